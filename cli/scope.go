package cli

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gopf.dev/gopf"
)

// scopeFlags select the cluster and the namespaces.
type scopeFlags struct {
	everywhere bool
	namespaces []string
	kubeconfig string
	context    string
	wait       lifetime

	flags *pflag.FlagSet
}

func (s *scopeFlags) add(flags *pflag.FlagSet, verb string) {
	s.flags = flags
	flags.BoolVarP(&s.everywhere, "all-namespaces", "A", false, verb+" all namespaces")
	annotate(flags, "all-namespaces", "CLUSTERWIDE")
	flags.StringArrayVarP(&s.namespaces, "namespace", "n", nil, verb+" the namespaces that match this `name or pattern`; may be repeated")
	annotate(flags, "namespace", "NAMESPACES")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster")
	flags.StringVar(&s.context, "context", "", "`name` of the context in the kubeconfig; default: the current context")
	flags.Var(&s.wait, "wait", "maximum `duration` to wait for the API server at startup, in seconds or with a unit like 2m; default: a few attempts")
}

func (s *scopeFlags) check() error {
	if s.everywhere && len(s.namespaces) > 0 {
		return misuse("%s and %s exclude each other; use only one of them", source(s.flags, "all-namespaces"), source(s.flags, "namespace"))
	}
	for _, n := range s.namespaces {
		if strings.TrimSpace(n) == "" {
			return misuse("--namespace needs a name or a pattern")
		}
	}
	return nil
}

// unsaid reports whether neither flag is given, which means all namespaces.
func (s *scopeFlags) unsaid() bool { return !s.everywhere && len(s.namespaces) == 0 }

func (s *scopeFlags) options() []gopf.RunOption {
	return []gopf.RunOption{
		gopf.Namespaces(s.namespaces...), gopf.Kubeconfig(s.kubeconfig, s.context), gopf.WaitForCluster(time.Duration(s.wait)),
	}
}
