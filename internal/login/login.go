// Package login keeps an operator supplied with credentials.
//
// # Flow
//
//  1. [Vault.Login] logs in before anything else and chooses credentials: those
//     of the highest priority, any of them if there are several. An operator
//     without credentials does not start.
//  2. [Vault.Run] waits until they are refused or about to expire. Others that
//     are left are used at once; otherwise it logs in again.
//  3. What a login brings is compared with what was refused before. If all of
//     it was, the refused ones are tried again in turn, with logins at growing
//     pauses, until something is accepted: the server may be at fault, too.
//
// # Guarantees
//
// Once started, nothing that a login or a server does ends the operator.
// Meanwhile requests wait, and [Status] says why. If a login answers in time,
// no request has to wait for the end of credentials that expire.
package login

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
)

// Credentials are what a login brings.
type Credentials struct {
	Config    *rest.Config // where the server is and who we are
	Namespace string       // to work in by default; may be empty
	Priority  int          // the highest one is used
	Expires   time.Time    // not to be used from then on; zero: never
}

// Source logs in: it returns what each login function has brought, by their
// ids, leaving out those that had nothing. With an error, the start of an
// operator fails; later on, what is returned along with it is used.
type Source func(ctx context.Context) (map[string]*Credentials, error)

// Default is the login of operators without login functions: with the
// kubeconfig at the path, or what [kube.LoadConfig] finds without one. It is
// read anew at each login, so that changes are taken up.
func Default(kubeconfig, kubeContext string) Source {
	return func(context.Context) (map[string]*Credentials, error) {
		cfg, namespace, err := kube.LoadConfig(kubeconfig, kubeContext)
		if err != nil {
			return nil, err
		}
		return map[string]*Credentials{"default": {Config: cfg, Namespace: namespace}}, nil
	}
}

// Fixed is the login of operators whose credentials were given to them.
func Fixed(cfg *rest.Config, namespace string) Source {
	return func(context.Context) (map[string]*Credentials, error) {
		return map[string]*Credentials{"fixed": {Config: cfg, Namespace: namespace}}, nil
	}
}

// Error says that an operator cannot start for want of credentials.
type Error struct {
	Err error // of the login; nil if it brought nothing that could be used
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "the login brought no usable credentials: a login handler must return some that have not expired; " +
			"without login handlers, a kubeconfig or the service account of the pod is used"
	}
	return fmt.Sprintf("log in: %v", e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ExpiredError says that requests wait because the credentials have expired
// and no others have come yet.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the credentials have expired at %s and the login has brought no others yet", e.At.Format(time.RFC3339))
}

// Status says whether there are credentials to work with.
type Status struct {
	Err   error     // why requests wait for credentials; nil if they do not
	Since time.Time // since when
}
