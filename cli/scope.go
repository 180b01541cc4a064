package cli

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gopf.dev/gopf"
)

// scopeFlags say which cluster is meant, and how much of it.
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
	flags.BoolVarP(&s.everywhere, "all-namespaces", "A", false, verb+" the whole cluster")
	annotate(flags, "all-namespaces", "CLUSTERWIDE")
	flags.StringArrayVarP(&s.namespaces, "namespace", "n", nil, verb+" the namespaces with this `name or pattern`; may be repeated")
	annotate(flags, "namespace", "NAMESPACES")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the `file` that tells where the cluster is")
	flags.StringVar(&s.context, "context", "", "the `name` of the context in the kubeconfig; default: the current one")
	flags.Var(&s.wait, "wait", "`how long` to wait for an API server that is not up yet, in seconds or as 2m; default: a few attempts")
}

func (s *scopeFlags) check() error {
	if s.everywhere && len(s.namespaces) > 0 {
		return misuse("%s and %s exclude each other: use one of them", source(s.flags, "all-namespaces"), source(s.flags, "namespace"))
	}
	for _, n := range s.namespaces {
		if strings.TrimSpace(n) == "" {
			return misuse("--namespace needs a name or a pattern")
		}
	}
	return nil
}

// unsaid is whether the whole cluster is meant only because nothing else is said.
func (s *scopeFlags) unsaid() bool { return !s.everywhere && len(s.namespaces) == 0 }

func (s *scopeFlags) options() []gopf.RunOption {
	return []gopf.RunOption{
		gopf.Namespaces(s.namespaces...), gopf.Kubeconfig(s.kubeconfig, s.context), gopf.WaitForCluster(time.Duration(s.wait)),
	}
}
