package gopf

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/handler"
)

// Activity is the argument of handlers of the operator itself: startup, cleanup, login
// and probe handlers. Their errors have the same meaning as those of change handlers,
// but attempts are counted in memory only; see [ChangeFunc].
type Activity struct {
	// Settings are the operator's settings. Startup handlers may change them; later
	// changes have no effect.
	Settings *Settings
	// Log is a logger that adds the activity to every line.
	Log *slog.Logger
	// API is a client for the cluster. It is nil in startup and login handlers, which
	// run before there are credentials, and in cleanup handlers if the operator failed
	// to start. With leader election, cleanup handlers can only read, because the lease
	// has been released.
	API client.Client
	// Retry is the number of earlier attempts: 0 in the first call.
	Retry int
	// Started is the time of the first attempt.
	Started time.Time

	own **slog.Logger // the logger of lines about the outcome; nil means none
}

// Login has the address of an API server and credentials for it.
type Login struct {
	// Config has the server and the credentials. Its rate limits are ignored. Exec
	// plugins, token files and OIDC are refreshed by client-go.
	Config *rest.Config
	// Namespace is the namespace for objects that belong to none, such as Kubernetes
	// events about cluster-scoped objects. "" means "default".
	Namespace string
	// Priority selects among the logins of several handlers: the highest one is used,
	// and the others replace it if the API server rejects it.
	Priority int
	// Expires is the time at which the login handlers are called again. Zero means
	// never.
	Expires time.Time
}

// activityKind is a kind of handlers that do not belong to an object.
type activityKind string

const (
	startup activityKind = "startup"
	cleanup activityKind = "cleanup"
	logins  activityKind = "login"
	probing activityKind = "probe"
)

// activityHandler is a declared handler of an activity.
type activityHandler struct {
	id, where string
	limits    handler.Limits
	call      func(context.Context, *Activity) (any, error)
}

// OnStartup calls fn before the operator connects to the cluster. Startup handlers run
// one after another, in order of declaration. By default, errors are retried without
// limit; if fn fails permanently, [Operator.Run] returns its error.
//
//	op.OnStartup("configure", func(ctx context.Context, a *gopf.Activity) error {
//		a.Settings.Execution.DefaultBackoff = 10 * time.Second
//		return nil
//	}, gopf.MaxAttempts(5))
func (op *Operator) OnStartup(id string, fn func(context.Context, *Activity) error, opts ...RetryOption) {
	op.declareActivity(startup, id, fn == nil, func(ctx context.Context, a *Activity) (any, error) { return nil, fn(ctx, a) }, opts)
}

// OnCleanup calls fn after all other handlers have stopped, even if a startup handler
// failed. The shutdown does not cancel its context: set a [Timeout]. If fn fails
// permanently, [Operator.Run] returns its error.
func (op *Operator) OnCleanup(id string, fn func(context.Context, *Activity) error, opts ...RetryOption) {
	op.declareActivity(cleanup, id, fn == nil, func(ctx context.Context, a *Activity) (any, error) { return nil, fn(ctx, a) }, opts)
}

// OnLogin calls fn for credentials: at startup, when they expire, and when the API
// server rejects them. A nil result means that this handler has none. Login handlers
// replace the default search for credentials, unless the operator runs with [Cluster]
// or [Kubeconfig]. See also [LoginWithKubeconfig] and [LoginWithServiceAccount].
func (op *Operator) OnLogin(id string, fn func(context.Context, *Activity) (*Login, error), opts ...RetryOption) {
	op.declareActivity(logins, id, fn == nil, func(ctx context.Context, a *Activity) (any, error) {
		l, err := fn(ctx, a)
		if l == nil {
			return nil, err // an untyped nil
		}
		return l, err
	}, opts)
}

// OnProbe calls fn for requests to the liveness endpoint, at most every 10 s. Its
// result is in the response under the id, as JSON; nil is left out. If fn fails, the
// response is a 500; see [HealthSettings.Liveness].
func (op *Operator) OnProbe(id string, fn func(context.Context, *Activity) (any, error), opts ...RetryOption) {
	op.declareActivity(probing, id, fn == nil, fn, opts)
}

func (op *Operator) declareActivity(kind activityKind, id string, empty bool, call func(context.Context, *Activity) (any, error), opts []RetryOption) {
	limit := limits(opts)
	switch {
	case id == "":
		op.problem("a %s handler has no id", kind)
	case empty:
		op.problem("handler %q has no function", id)
	}
	for _, p := range checkLimits(limit) {
		op.problem("handler %q: %s", id, p)
	}
	for _, other := range op.activities[kind] {
		if other.id == id {
			op.problem("duplicate %s handler %q, first declared at %s; use another id", kind, id, other.where)
			return
		}
	}
	op.activities[kind] = append(op.activities[kind], activityHandler{id, caller(), limit, func(ctx context.Context, a *Activity) (any, error) {
		var result any
		describe := func() *Call {
			return &Call{Handler: id, Type: string(kind), Retry: a.Retry, Log: a.Log, log: &a.Log, own: a.own}
		}
		err := op.hooks.call(ctx, describe, func(ctx context.Context) (err error) {
			result, err = call(ctx, a)
			return err
		})
		return result, err
	}})
}
