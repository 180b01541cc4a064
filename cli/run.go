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
)

// devPriority is that of people who try something on a cluster that is in use.
const devPriority = 666

// legacyNamespace is a variable of Kopf's for one more namespace.
const legacyNamespace = "KOPF_RUN_NAMESPACE"

// runFlags are those of the command run.
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
	election, electionName, electionNamespace string

	flags *pflag.FlagSet
}

func runCommand(op *gopf.Operator, program string, exit func(code int)) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve the cluster until stopped",
		Long: `Serve the cluster until stopped.

The cluster is found through --kubeconfig, the variable KUBECONFIG, the service
account of the pod, or ~/.kube/config. Ctrl-C or SIGTERM stop the operator: it
finishes what it is doing, and exits with 0. A second one ends it at once.

` + aboutVariables("run", ",\n…_LIVENESS_ENDPOINT is --liveness; "+legacyNamespace+" is one more namespace.\nPOD_ID names the process among its peers"),
		Example: strings.ReplaceAll(`  # everything in the cluster
  PROGRAM run --all-namespaces

  # one namespace, with all details in the log
  PROGRAM run --namespace myapp --verbose

  # all namespaces of an application but those of pull requests
  PROGRAM run --namespace 'myapp-*,!myapp-pr-*'

  # on a cluster where the same operator runs already: that one pauses meanwhile
  PROGRAM run --all-namespaces --dev

  # several replicas, of which one works at a time
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

// compiledIn is the advice for those who are used to Kopf's arguments.
const compiledIn = "the handlers are compiled into this program; to run packages that have no main function, use 'gopf run PKG…'"

func (f *runFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	f.scope.add(flags, "serve")
	flags.BoolVar(&f.standalone, "standalone", false, "neither look for other operators to take turns with, nor tell them of this one")
	flags.StringVarP(&f.peering, "peering", "P", "", "the `name` of the peering to meet other operators at; wait until it exists")
	flags.IntVarP(&f.priority, "priority", "p", 0, "which operator of a peering works: the one with the highest `number`")
	flags.BoolVar(&f.dev, "dev", false, "use the priority 666, so that operators with usual priorities pause, and a local webhook server if none is set")
	flags.StringVarP(&f.liveness, "liveness", "L", "", "the `URL` to serve the results of probes at, as http://0.0.0.0:8080/healthz")
	annotate(flags, "liveness", "LIVENESS_ENDPOINT")
	flags.StringVar(&f.election, "election", "", "`how` replicas choose the one that works: lease or none")
	flags.StringVar(&f.electionName, "election-name", "", "the `name` of the lease; default: that of the program")
	flags.StringVar(&f.electionNamespace, "election-namespace", "", "the `namespace` of the lease; default: that of the pod or of the context")
	flags.StringVar(&f.health, "health", "", "the `address` to serve /livez and /readyz at, as :8080")
	flags.StringVar(&f.metrics, "metrics", "", "the `address` to serve /metrics at, as :9090; may be the same")
	flags.Var(&f.pprof, "pprof", "the `address` to serve profiles of the program at, as :6060; for this machine only, unless it has a host")
	flags.Lookup("pprof").NoOptDefVal = profilesAddress
	flags.BoolVar(&f.strict, "strict", false, "be not ready while some handlers cannot be served")
	flags.StringArrayVarP(&f.modules, "module", "m", nil, "Kopf's modules with handlers")
	annotate(flags, "module", "MODULES")
	_ = flags.MarkHidden("module") // it is there for its advice
	f.logging.add(cmd)
	complete(cmd, "election", "lease", "none")
}

func (f *runFlags) run(cmd *cobra.Command, op *gopf.Operator, exit func(code int)) error {
	if n := os.Getenv(legacyNamespace); n != "" {
		if err := setFlag(f.flags, f.flags.Lookup("namespace"), legacyNamespace, n); err != nil {
			return err
		}
	}
	if err := f.check(); err != nil {
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
	// Startup handlers may change it while others look at it here.
	var limit atomic.Int64
	readLimit := func() { limit.Store(int64(op.Settings.Process.UltimateExitingTimeout)) }
	readLimit()
	stop := stopping{log: log, limit: func() time.Duration { return time.Duration(limit.Load()) }, exit: exit}
	return stop.supervise(cmd.Context(), func(ctx context.Context) error {
		return op.Run(ctx, append(f.scope.options(), gopf.Log(log), gopf.WhenReady(readLimit))...)
	})
}

func (f *runFlags) check() error {
	switch {
	case len(f.modules) > 0:
		return misuse("%s has no meaning here: %s", source(f.flags, "module"), compiledIn)
	case f.standalone && f.peering != "":
		return misuse("%s and %s exclude each other: use either a peering or none", source(f.flags, "standalone"), source(f.flags, "peering"))
	case f.flags.Changed("peering") && f.peering == "":
		return misuse("--peering needs a name")
	case f.flags.Changed("election") && f.election != "lease" && f.election != "none":
		return misuse("%s is %q: use lease or none", source(f.flags, "election"), f.election)
	}
	if err := f.checkAddresses(); err != nil {
		return err
	}
	return f.scope.check()
}

// checkAddresses finds what is written wrongly. Whether somebody else listens
// there is found when the operator runs.
func (f *runFlags) checkAddresses() error {
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
	for _, flag := range slices.Sorted(maps.Keys(check)) {
		if err := check[flag]; err != nil {
			return misuse("%s: %w", source(f.flags, flag), err)
		}
	}
	return nil
}

// apply puts what was given into the settings, and leaves the rest as it is.
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
	set(&s.Health.Liveness, f.liveness, given("liveness"))
	set(&s.Health.Address, f.health, given("health"))
	set(&s.Health.Strict, f.strict, given("strict"))
	set(&s.Metrics.Address, f.metrics, given("metrics"))
	set(&s.Metrics.Pprof, string(f.pprof), given("pprof"))
	set(&s.Election.Enabled, f.election == "lease", given("election"))
	set(&s.Election.Name, f.electionName, given("election-name"))
	set(&s.Election.Namespace, f.electionNamespace, given("election-namespace"))
}

func set[T any](to *T, value T, given bool) {
	if given {
		*to = value
	}
}
