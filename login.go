package gopf

import (
	"context"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
)

// loginSource returns the source of credentials: the options of Run, the login
// handlers, or the default search, in this order.
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

// LoginWithKubeconfig returns a login handler that reads a kubeconfig each time it is
// called. An empty path means the files in the variable KUBECONFIG, or ~/.kube/config.
// An empty kubeContext means the current context. The priority is 10.
func LoginWithKubeconfig(path, kubeContext string) func(context.Context, *Activity) (*Login, error) {
	return func(context.Context, *Activity) (*Login, error) {
		cfg, namespace, err := kube.LoadKubeconfig(path, kubeContext)
		if err != nil {
			return nil, err
		}
		return &Login{Config: cfg, Namespace: namespace, Priority: 10}, nil
	}
}

// LoginWithServiceAccount returns a login handler for operators in pods. Outside of a
// pod it returns no credentials and no error. The priority is 20.
func LoginWithServiceAccount() func(context.Context, *Activity) (*Login, error) {
	return serviceAccountLogin(kube.LoadServiceAccount)
}

func serviceAccountLogin(load func() (*rest.Config, string, error)) func(context.Context, *Activity) (*Login, error) {
	return func(context.Context, *Activity) (*Login, error) {
		cfg, namespace, err := load()
		if err != nil || cfg == nil {
			return nil, err
		}
		return &Login{Config: cfg, Namespace: namespace, Priority: 20}, nil
	}
}
