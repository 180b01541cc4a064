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
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// RunOption is an option of [Operator.Run], [Operator.PausePeers] and
// [Operator.UnpausePeers].
type RunOption func(*runOptions)

type runOptions struct {
	namespaces discovery.Namespaces
	kubeconfig string
	context    string
	cluster    *rest.Config
	log        *slog.Logger
	ready      func()
	webhooks   engine.Substitute
	wait       time.Duration
	jitter     jitter.Source // for the framework's own retries
}

// Namespaces restricts the operator to namespaces that match any of the patterns. A
// pattern is a name, or a comma-separated list of globs. Globs with a "!" exclude names
// again: "myapp-*,!myapp-pr-*". Default: the whole cluster. An empty pattern is an
// error of Run.
func Namespaces(patterns ...string) RunOption {
	return func(o *runOptions) {
		for _, p := range patterns {
			o.namespaces = append(o.namespaces, discovery.Globs(p))
		}
	}
}

// NamespacesMatching is [Namespaces] with regular expressions that must match the whole
// name.
func NamespacesMatching(expressions ...*regexp.Regexp) RunOption {
	return func(o *runOptions) {
		for _, re := range expressions {
			o.namespaces = append(o.namespaces, discovery.Regexp(re))
		}
	}
}

// Kubeconfig sets the kubeconfig file and its context. An empty context means the
// current one. Default: the credentials that kubectl or a program in a pod would use,
// or those of the login handlers.
func Kubeconfig(path, context string) RunOption {
	return func(o *runOptions) { o.kubeconfig, o.context = path, context }
}

// Cluster sets the API server and the credentials. It takes precedence over
// [Kubeconfig] and login handlers.
func Cluster(config *rest.Config) RunOption {
	return func(o *runOptions) { o.cluster = config }
}

// Log sets the logger of the operator. Package logs has handlers for the usual formats.
// Default: [slog.Default]. nil means no logging.
func Log(log *slog.Logger) RunOption {
	return func(o *runOptions) { o.log = log }
}

// WhenReady calls fn once when the operator serves the cluster: its startup handlers
// are done, it has logged in, and it has discovered the resources. fn must not block.
func WhenReady(fn func()) RunOption {
	return func(o *runOptions) { o.ready = fn }
}

// WaitForCluster sets how long the operator waits at startup for an API server that
// does not respond or is not ready. Default: 0, which means a few attempts within
// seconds; then Run returns an error. After startup, the operator waits for the API
// server without a limit, with or without this option.
func WaitForCluster(limit time.Duration) RunOption {
	return func(o *runOptions) { o.wait = limit }
}

// recording is the time for writing the outcomes of handlers after they were canceled.
const recording = 5 * time.Second

// backlog is the maximum number of bytes of one resource that wait to be handled. When
// it is reached, the operator stops reading its streams until the backlog shrinks.
const backlog = 4 << 20

// prepare checks the options and completes them.
func (o *runOptions) prepare() error {
	if slices.Contains(o.namespaces, discovery.Globs("")) {
		return errors.New("invalid namespaces: a pattern has an empty name; use a name or a pattern, or omit the option to serve the whole cluster")
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// clusterwide reports whether the operator serves the whole cluster.
func (o *runOptions) clusterwide() bool { return len(o.namespaces) == 0 }

// programName returns the name of the executable, which all replicas of an operator
// share.
func programName() string {
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))
	return strings.Trim(unnamable.ReplaceAllString(name, "-"), "-.")
}

// userAgent returns the User-Agent header of requests: NAME/VERSION gopf/VERSION.
func userAgent(program string, build buildinfo.Info) string {
	return fmt.Sprintf("%s/%s gopf/%s", cmp.Or(program, "operator"), buildinfo.Token(build.Version), buildinfo.Token(build.Framework))
}

// unnamable matches characters that are invalid in object names.
var unnamable = regexp.MustCompile(`[^-a-z0-9.]+`)

func (o *runOptions) engineConfig(op *Operator) (engine.Config, error) {
	s := op.Settings
	var err error
	if s.Persistence, err = op.persistence(); err != nil {
		return engine.Config{}, err
	}
	if err := s.check(); err != nil {
		return engine.Config{}, err
	}
	api := kube.DefaultOptions()
	build := buildinfo.Read()
	api.UserAgent = userAgent(cmp.Or(op.name, programName()), build)
	api.RequestTimeout = s.Networking.RequestTimeout
	api.Backoffs = s.Networking.backoffs()
	api.ConnectTimeout = s.Networking.ConnectTimeout
	api.IgnoreProxyVariables = !s.Networking.TrustEnv
	api.EnforceRetryAfter = s.Networking.EnforceRetryAfter
	api.Wrap = s.Networking.Transport
	api.Jitter = o.jitter
	api.Log = o.log

	streams := stream.DefaultConfig(kind.Info{}, "")
	streams.ServerTimeout = s.Watching.ServerTimeout
	streams.ClientTimeout = s.Watching.ClientTimeout
	streams.InactivityTimeout = s.Watching.InactivityTimeout
	streams.ReconnectBackoff = s.Watching.ReconnectBackoff

	return engine.Config{
		Login: op.loginSource(o), Handlers: op.handlers, Daemons: op.daemons, Indices: op.indices,
		Namespaces: o.namespaces, Log: o.log, Version: build.Framework, Name: op.name,
		Posting: recorder.Config{
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
			DevName: op.devName(),
		},
		Health: vitals.Config{
			Liveness: s.Health.Liveness, Address: s.Health.Address, Strict: s.Health.Strict,
			Metrics: s.Metrics.Address, Pprof: s.Metrics.Pprof, Collectors: s.Metrics.Collectors,
			SecureMetrics: s.Metrics.Secure, SecureInsight: s.Insight.Secure,
			CertFile: s.Endpoints.CertFile, KeyFile: s.Endpoints.KeyFile,
			Probes: func(ctx context.Context) (map[string]any, error) { return op.perform(ctx, probing, o.log) },
		},
		Insight: s.Insight.Address,
		Ready:   o.ready, Wait: o.wait,
		Kube: api, Stream: streams,
		Process: process.Config{
			Progress: s.Persistence.Progress, Base: s.Persistence.Base, Finalizer: s.Persistence.Finalizer,
			Former:         s.Persistence.formerFinalizers(),
			Lifecycle:      s.Execution.Lifecycle.inEngine(),
			DefaultBackoff: s.Execution.DefaultBackoff,
			ErrorDelays:    s.Queueing.ErrorDelays,
			Jitter:         o.jitter,
			WriteGrace:     recording,
			PlainSecrets:   s.Persistence.PlainSecrets,
			TrustCopies:    s.Persistence.TrustCopies,
			Webhooks:       s.Admission.Managed,
			SecretKey:      slices.Clone(s.Persistence.SecretKey),
			Begin:          op.hooks.begin(),
		},
		ExitTimeout:      s.Queueing.ExitTimeout,
		Polling:          s.Background.CancellationPolling,
		ScanningDisabled: s.Scanning.Disabled,
		WorkerLimit:      s.Queueing.WorkerLimit,
		MaxWorkers:       s.Execution.MaxWorkers,
		Backlog:          backlog,
	}, nil
}
