package gopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/buildinfo"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// RunOption says where and how an operator is run.
type RunOption func(*runOptions)

type runOptions struct {
	namespaces observe.Namespaces
	kubeconfig string
	context    string
	cluster    *rest.Config
	log        *slog.Logger
	ready      func()
	webhooks   engine.Substitute
	wait       time.Duration
	jitter     jitter.Source // of the framework's own retries
}

// Namespaces serves only the namespaces that match any of the patterns. A
// pattern is a name, or globs separated by commas, of which those with a "!"
// take out names again: "myapp-*,!myapp-pr-*". Without this option the whole
// cluster is served.
func Namespaces(patterns ...string) RunOption {
	return func(o *runOptions) {
		for _, p := range patterns {
			o.namespaces = append(o.namespaces, observe.Globs(p))
		}
	}
}

// NamespacesMatching is [Namespaces] with regular expressions, which whole names
// must match.
func NamespacesMatching(expressions ...*regexp.Regexp) RunOption {
	return func(o *runOptions) {
		for _, re := range expressions {
			o.namespaces = append(o.namespaces, observe.Regexp(re))
		}
	}
}

// Kubeconfig names the file, and the context in it, that tell where the cluster
// is; "" for the current context. Without this option, it is found as kubectl
// and programs in pods find it.
func Kubeconfig(path, context string) RunOption {
	return func(o *runOptions) { o.kubeconfig, o.context = path, context }
}

// Cluster tells where the cluster is.
func Cluster(config *rest.Config) RunOption {
	return func(o *runOptions) { o.cluster = config }
}

// Log sets where log lines go. Package logs has handlers for the usual formats;
// the default is [slog.Default].
func Log(log *slog.Logger) RunOption {
	return func(o *runOptions) { o.log = log }
}

// WhenReady calls fn once when the operator has begun to serve: it has started,
// is logged in, and knows the resources of the cluster. fn must not block.
func WhenReady(fn func()) RunOption {
	return func(o *runOptions) { o.ready = fn }
}

// WaitForCluster makes the operator wait at the start for an API server that does
// not respond yet or is not ready, for at most this long. Default: 0, a few attempts
// within seconds, and then Run returns an error. Once the operator has started, it
// waits for the API server without a limit, with or without this option.
func WaitForCluster(limit time.Duration) RunOption {
	return func(o *runOptions) { o.wait = limit }
}

// recording is the time for writing what handlers have done after they were
// cancelled.
const recording = 5 * time.Second

// backlog is how much may wait of one resource, in bytes. When it is reached,
// reading from the cluster pauses.
const backlog = 4 << 20

// prepare checks the options.
func (o *runOptions) prepare() error {
	if slices.Contains(o.namespaces, observe.Globs("")) {
		return errors.New("a namespace to be served has an empty name: give a name or a pattern, or none at all for the whole cluster")
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// clusterwide tells whether the whole cluster is served.
func (o *runOptions) clusterwide() bool { return len(o.namespaces) == 0 }

// programName is what replicas of one operator have in common.
func programName() string {
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))
	return strings.Trim(unnamable.ReplaceAllString(name, "-"), "-.")
}

// userAgent is the name of the operator in requests: NAME/VERSION gopf/VERSION.
func userAgent(program string, build buildinfo.Info) string {
	return fmt.Sprintf("%s/%s gopf/%s", cmp.Or(program, "operator"), buildinfo.Token(build.Version), buildinfo.Token(build.Framework))
}

// unnamable is what names of objects must not have.
var unnamable = regexp.MustCompile(`[^-a-z0-9.]+`)

func (o *runOptions) engineConfig(op *Operator) (engine.Config, error) {
	s := op.Settings
	if err := s.check(); err != nil {
		return engine.Config{}, err
	}
	api := kube.DefaultOptions()
	build := buildinfo.Read()
	api.UserAgent = userAgent(programName(), build)
	api.RequestTimeout = s.Networking.RequestTimeout
	api.Backoffs = s.Networking.ErrorBackoffs
	api.ConnectTimeout = s.Networking.ConnectTimeout
	api.IgnoreProxyVariables = !s.Networking.TrustEnv
	api.EnforceRetryAfter = s.Networking.EnforceRetryAfter
	api.Jitter = o.jitter
	api.Log = o.log

	streams := stream.DefaultConfig(kind.Info{}, "")
	streams.ServerTimeout = s.Watching.ServerTimeout
	streams.ClientTimeout = s.Watching.ClientTimeout
	streams.InactivityTimeout = s.Watching.InactivityTimeout
	streams.ReconnectBackoff = s.Watching.ReconnectBackoff

	return engine.Config{
		Login: op.loginSource(o), Handlers: op.handlers, Daemons: op.daemons, Indices: op.indices,
		Namespaces: o.namespaces, Log: o.log, Version: build.Framework,
		Posting: posting.Config{
			Enabled: s.Posting.Enabled, Loggers: s.Posting.Loggers, Level: s.Posting.Level,
			Component: s.Posting.ReportingComponent, Instance: s.Posting.ReportingInstance,
			NamePrefix: s.Posting.EventNamePrefix, Log: o.log,
		},
		Peering: engine.Peering{
			Standalone: s.Peering.Standalone, Clusterwide: s.Peering.Clusterwide, Mandatory: s.Peering.Mandatory, Stealth: s.Peering.Stealth,
			Name: s.Peering.Name, Identity: s.Peering.Identity, Priority: s.Peering.Priority, Lifetime: s.Peering.Lifetime,
		},
		Election: engine.Election{
			Enabled: s.Election.Enabled, Name: cmp.Or(s.Election.Name, programName()), Namespace: s.Election.Namespace,
			Identity: s.Election.Identity, Duration: s.Election.Duration, RenewDeadline: s.Election.RenewDeadline, RetryPeriod: s.Election.RetryPeriod,
		},
		Admission: engine.Admission{
			Server: s.Admission.Server, Managed: s.Admission.Managed, Dev: s.Admission.Dev, Substitute: o.webhooks,
		},
		Health: engine.Health{
			Liveness: s.Health.Liveness, Address: s.Health.Address, Strict: s.Health.Strict,
			Metrics: s.Metrics.Address, Pprof: s.Metrics.Pprof, Collectors: s.Metrics.Collectors,
			Probes: func(ctx context.Context) (map[string]any, error) { return op.perform(ctx, probing, o.log) },
		},
		Ready: o.ready, Wait: o.wait,
		Kube: api, Stream: streams,
		Process: process.Config{
			Progress: s.Persistence.Progress, Base: s.Persistence.Base, Finalizer: s.Persistence.Finalizer,
			Lifecycle:      s.Execution.Lifecycle.inEngine(),
			DefaultBackoff: s.Execution.DefaultBackoff,
			ErrorDelays:    s.Queueing.ErrorDelays,
			Jitter:         o.jitter,
			WriteGrace:     recording,
			PlainSecrets:   s.Persistence.PlainSecrets,
			TrustCopies:    s.Persistence.TrustCopies,
			Webhooks:       s.Admission.Managed,
			SecretKey:      slices.Clone(s.Persistence.SecretKey),
		},
		ExitTimeout:      s.Queueing.ExitTimeout,
		Polling:          s.Background.CancellationPolling,
		ScanningDisabled: s.Scanning.Disabled,
		WorkerLimit:      s.Queueing.WorkerLimit,
		MaxWorkers:       s.Execution.MaxWorkers,
		Backlog:          backlog,
	}, nil
}
