package gopf

import (
	"context"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
)

// loginSource is where the operator gets its credentials from: what it was given
// to run with, or else its login handlers, or else what is to be found.
func (op *Operator) loginSource(o *runOptions) login.Source {
	switch {
	case o.cluster != nil:
		return login.Fixed(o.cluster, "")
	case len(op.activities[logins]) == 0, o.kubeconfig != "", o.context != "":
		return login.Default(o.kubeconfig, o.context)
	}
	return func(ctx context.Context) (map[string]*login.Credentials, error) {
		results, err := op.perform(ctx, logins, o.log)
		found := map[string]*login.Credentials{}
		for id, result := range results {
			l := result.(*Login)
			found[id] = &login.Credentials{Config: l.Config, Namespace: l.Namespace, Priority: l.Priority, Expires: l.Expires}
		}
		return found, err
	}
}

// LoginWithKubeconfig is a login handler that reads a kubeconfig, each time anew:
// that at the path, or if it is "", those in the variable KUBECONFIG, or else
// ~/.kube/config. The context is the current one if it is "".
func LoginWithKubeconfig(path, kubeContext string) LoginFunc {
	return func(context.Context, *Activity) (*Login, error) {
		cfg, namespace, err := kube.LoadKubeconfig(path, kubeContext)
		if err != nil {
			return nil, err
		}
		return &Login{Config: cfg, Namespace: namespace, Priority: 10}, nil
	}
}

// LoginWithServiceAccount is a login handler for operators in pods. Elsewhere it
// has nothing to offer, which is no error.
func LoginWithServiceAccount() LoginFunc { return serviceAccountLogin(kube.LoadServiceAccount) }

func serviceAccountLogin(load func() (*rest.Config, string, error)) LoginFunc {
	return func(context.Context, *Activity) (*Login, error) {
		cfg, namespace, err := load()
		if err != nil || cfg == nil {
			return nil, err
		}
		return &Login{Config: cfg, Namespace: namespace, Priority: 20}, nil
	}
}
