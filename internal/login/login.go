// Package login provides an operator with credentials.
//
// # Flow
//
//  1. [Vault.Login] logs in at startup and chooses credentials: a random one of
//     those with the highest priority. An operator without credentials does not
//     start.
//  2. [Vault.Run] waits until the credentials are rejected or about to expire.
//     If other credentials are left, it uses them at once; otherwise it logs in
//     again.
//  3. The result of a login is compared with the credentials rejected before. If
//     all of it was rejected, these credentials are retried in turn, with logins
//     at growing pauses, until some are accepted: the fault may be the server's.
//
// # Guarantees
//
// After startup, no failure of a login or a server ends the operator. Requests wait
// meanwhile, and [Status] has the reason. If a login completes in time, no request
// waits because credentials expire.
package login

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
)

// Credentials are the result of a login.
type Credentials struct {
	Config    *rest.Config // the server and our identity
	Namespace string       // default namespace; may be empty
	Priority  int          // the highest one is used
	Expires   time.Time    // must not be used from then on; zero means never
}

// Source logs in. It returns the credentials by the id of the login function, without
// functions that had none. An error makes the start of an operator fail. Later,
// credentials that are returned with an error are used.
type Source func(ctx context.Context) (map[string]*Credentials, error)

// Default returns the login of operators without login functions. It uses the
// kubeconfig at the path, or the result of [kube.LoadConfig] if the path is empty. It
// is read again at each login, so changes take effect.
func Default(kubeconfig, kubeContext string) Source {
	return func(context.Context) (map[string]*Credentials, error) {
		cfg, namespace, err := kube.LoadConfig(kubeconfig, kubeContext)
		if err != nil {
			return nil, err
		}
		return map[string]*Credentials{"default": {Config: cfg, Namespace: namespace}}, nil
	}
}

// Fixed returns the login of operators that were given their credentials.
func Fixed(cfg *rest.Config, namespace string) Source {
	return func(context.Context) (map[string]*Credentials, error) {
		return map[string]*Credentials{"fixed": {Config: cfg, Namespace: namespace}}, nil
	}
}

// Error means that an operator cannot start because it has no credentials.
type Error struct {
	Err error // of the login; nil means that it returned no usable credentials
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "the login returned no usable credentials: a login handler must return credentials that have not expired; " +
			"without login handlers, a kubeconfig or the service account of the pod is used"
	}
	return fmt.Sprintf("log in: %v", e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ExpiredError means that requests wait because the credentials have expired and no
// others are available yet.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the credentials expired at %s and the login has not returned others yet", e.At.Format(time.RFC3339))
}

// Status reports whether there are usable credentials.
type Status struct {
	Err   error     // why requests wait for credentials; nil means that they do not
	Since time.Time // start of the wait
}
