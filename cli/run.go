package cli

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/page"
)

// devPriority is the priority of developers who test on a cluster that is in use.
const devPriority = 666

// legacyNamespace is Kopf's variable for one more namespace.
const legacyNamespace = "KOPF_RUN_NAMESPACE"

// runFlags are the flags of the command run.
type runFlags struct {
	scope   scopeFlags
	logging logFlags
	modules []string

	standalone, dev                           bool
	priority                                  int
	peering                                   string
	liveness, health, metrics                 string
	strict                                    bool
	pprof                                     profiles
	insight                                   insightFlag
	metricsSecure, insightSecure              bool
	tlsCert, tlsKey                           string
	election, electionName, electionNamespace string

	flags *pflag.FlagSet
}

func runCommand(op *gopf.Operator, program string, exit func(code int)) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve the cluster until stopped",
		Long: `Serve the cluster until stopped.

The operator connects to the cluster of --kubeconfig, of the variable KUBECONFIG, of
the service account of its pod, or of ~/.kube/config, in this order. Ctrl-C or SIGTERM
stop it gracefully, with the exit code 0. A second signal stops it immediately.

` + aboutVariables("run", ", …_LIVENESS_ENDPOINT is --liveness; "+legacyNamespace+" adds one namespace.\nPOD_ID is the identity of the operator in a peering"),
		Example: strings.ReplaceAll(`  # all namespaces
  PROGRAM run --all-namespaces

  # one namespace, with debug messages in the log
  PROGRAM run --namespace myapp --verbose

  # the namespaces of an application, except those of pull requests
  PROGRAM run --namespace 'myapp-*,!myapp-pr-*'

  # on a cluster where the same operator already runs; it pauses meanwhile
  PROGRAM run --all-namespaces --dev

  # several replicas with leader election
  PROGRAM run --all-namespaces --election=lease --health=:8080 --metrics=:9090`, "PROGRAM", program),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse("unknown command or argument %q: %s", args[0], compiledIn)
			}
			return nil
		},
		PreRunE: readEnvironment,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd, op, exit) },
	}
	f.add(cmd)
	return cmd
}

// compiledIn is the advice for users who pass Kopf's arguments.
const compiledIn = "the handlers are compiled into this program; to run packages that have no main function, use 'gopf run PKG…'"

func (f *runFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	f.scope.add(flags, "serve")
	flags.BoolVar(&f.standalone, "standalone", false, "ignore other operators, and do not join a peering")
	flags.StringVarP(&f.peering, "peering", "P", "", "`name` of the peering to join; the operator waits until it exists")
	flags.IntVarP(&f.priority, "priority", "p", 0, "`number`: the operator with the highest priority in a peering works, the others pause")
	flags.BoolVar(&f.dev, "dev", false, "for development: use the priority 666, so other operators pause, a local webhook server if none is set, and report lost edits of objects")
	flags.StringVarP(&f.liveness, "liveness", "L", "", "`URL` of the liveness endpoint with the results of probes, like http://0.0.0.0:8080/healthz")
	annotate(flags, "liveness", "LIVENESS_ENDPOINT")
	flags.StringVar(&f.election, "election", "", "leader election of replicas by this `method`: lease or none")
	flags.StringVar(&f.electionName, "election-name", "", "`name` of the lease; default: the name of the program")
	flags.StringVar(&f.electionNamespace, "election-namespace", "", "`namespace` of the lease; default: that of the pod or of the context")
	flags.StringVar(&f.health, "health", "", "listen `address` of /livez and /readyz, like :8080")
	flags.StringVar(&f.metrics, "metrics", "", "listen `address` of /metrics, like :9090; may be the same")
	flags.Var(&f.pprof, "pprof", "listen `address` of pprof profiles, like :6060; without a host, only this machine can connect")
	flags.Lookup("pprof").NoOptDefVal = profilesAddress
	flags.Var(&f.insight, "insight", "listen `address` of the web page of the operator, like :6080; only this machine can connect, unless --insight-secure is given")
	flags.Lookup("insight").NoOptDefVal = insightAddress
	flags.BoolVar(&f.metricsSecure, "metrics-secure", false, "serve the metrics over TLS, and only to clients with a token that may get /metrics")
	flags.BoolVar(&f.insightSecure, "insight-secure", false, "serve the page over TLS, and only to clients with a token that may get its paths; allows other hosts than localhost")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`file` of the certificate of these secure endpoints; default: self-signed")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`file` of the private key of that certificate")
	flags.BoolVar(&f.strict, "strict", false, "report not ready while some handlers cannot be served")
	flags.StringArrayVarP(&f.modules, "module", "m", nil, "Kopf's modules with handlers")
	annotate(flags, "module", "MODULES")
	_ = flags.MarkHidden("module") // it exists only for its advice
	f.logging.add(cmd)
	complete(cmd, "election", "lease", "none")
}

func (f *runFlags) run(cmd *cobra.Command, op *gopf.Operator, exit func(code int)) error {
	if n := os.Getenv(legacyNamespace); n != "" {
		if err := setFlag(f.flags, f.flags.Lookup("namespace"), legacyNamespace, n); err != nil {
			return err
		}
	}
	if err := f.check(op.Settings.Insight.Secure); err != nil {
		return err
	}
	log, err := f.logging.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	warnOfVariables(cmd, log)
	f.apply(&op.Settings)
	if f.scope.unsaid() {
		log.Warn("Neither --all-namespaces nor --namespace is given: serving the whole cluster.")
	}
	// Startup handlers may change it concurrently.
	var limit atomic.Int64
	readLimit := func() { limit.Store(int64(op.Settings.Process.UltimateExitingTimeout)) }
	readLimit()
	stop := stopping{log: log, limit: func() time.Duration { return time.Duration(limit.Load()) }, exit: exit}
	return stop.supervise(cmd.Context(), func(ctx context.Context) error {
		return op.Run(ctx, append(f.scope.options(), gopf.Log(log), gopf.WhenReady(readLimit))...)
	})
}

// check checks the flags. secure is the setting for the page in the program, which the flag
// overrides.
func (f *runFlags) check(secure bool) error {
	set(&secure, f.insightSecure, f.flags.Changed("insight-secure"))
	switch {
	case len(f.modules) > 0:
		return misuse("%s is not supported: %s", source(f.flags, "module"), compiledIn)
	case f.standalone && f.peering != "":
		return misuse("%s and %s exclude each other; use only one of them", source(f.flags, "standalone"), source(f.flags, "peering"))
	case f.flags.Changed("peering") && f.peering == "":
		return misuse("--peering needs a name, for example --peering=default")
	case f.flags.Changed("election") && f.election != "lease" && f.election != "none":
		return misuse("%s is %q; use lease or none", source(f.flags, "election"), f.election)
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return misuse("--tls-cert and --tls-key belong together; use both, or none of them for a self-signed certificate")
	}
	if err := f.checkAddresses(secure); err != nil {
		return err
	}
	return f.scope.check()
}

// checkAddresses checks the syntax of addresses. Whether they are free is known only when
// the operator listens.
func (f *runFlags) checkAddresses(secure bool) error {
	check := map[string]error{}
	if f.liveness != "" {
		check["liveness"] = health.CheckURL(f.liveness)
	}
	if f.health != "" {
		check["health"] = health.CheckAddress("health", f.health)
	}
	if f.metrics != "" {
		check["metrics"] = health.CheckAddress("metrics", f.metrics)
	}
	if f.pprof != "" {
		check["pprof"] = health.CheckAddress("profiles", string(f.pprof))
	}
	if f.insight != "" {
		check["insight"] = page.CheckAddress(string(f.insight), secure)
	}
	for _, flag := range slices.Sorted(maps.Keys(check)) {
		if err := check[flag]; err != nil {
			return misuse("%s: %w", source(f.flags, flag), err)
		}
	}
	return nil
}

// apply copies the given flags to the settings, and leaves the rest unchanged.
func (f *runFlags) apply(s *gopf.Settings) {
	given := f.flags.Changed
	if given("standalone") {
		s.Peering.Standalone = f.standalone
		s.Peering.Mandatory = s.Peering.Mandatory && !f.standalone
	}
	if given("peering") {
		s.Peering.Name, s.Peering.Mandatory, s.Peering.Standalone = f.peering, true, false
	}
	set(&s.Peering.Priority, f.priority, given("priority"))
	set(&s.Peering.Priority, devPriority, f.dev)
	set(&s.Admission.Dev, true, f.dev)
	set(&s.Execution.ReportLostEdits, true, f.dev)
	set(&s.Health.Liveness, f.liveness, given("liveness"))
	set(&s.Health.Address, f.health, given("health"))
	set(&s.Health.Strict, f.strict, given("strict"))
	set(&s.Metrics.Address, f.metrics, given("metrics"))
	set(&s.Metrics.Pprof, string(f.pprof), given("pprof"))
	set(&s.Insight.Address, string(f.insight), given("insight"))
	set(&s.Metrics.Secure, f.metricsSecure, given("metrics-secure"))
	set(&s.Insight.Secure, f.insightSecure, given("insight-secure"))
	set(&s.Endpoints.CertFile, f.tlsCert, given("tls-cert"))
	set(&s.Endpoints.KeyFile, f.tlsKey, given("tls-key"))
	set(&s.Election.Enabled, f.election == "lease", given("election"))
	set(&s.Election.Name, f.electionName, given("election-name"))
	set(&s.Election.Namespace, f.electionNamespace, given("election-namespace"))
	debugged := os.Getenv(debuggerVariable) != ""
	set(&s.Election.Duration, debuggerLease, debugged)
	set(&s.Election.RenewDeadline, debuggerLease-time.Minute, debugged)
}

// debuggerVariable is the environment variable by which "gopf dev" says that the operator runs
// under a debugger. At a breakpoint, the operator cannot renew its lease. The lease must
// outlast the breakpoint, or the operator would stop after it.
const debuggerVariable = "GOPF_DEBUGGER"

// debuggerLease is the duration of the lease under a debugger. "gopf dev" deletes leases of
// this duration when the debugger ends.
const debuggerLease = 8 * time.Hour

func set[T any](to *T, value T, given bool) {
	if given {
		*to = value
	}
}
