package gopf

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/registry"
)

// Activity is what the handlers of an operator's own life are given.
type Activity struct {
	// Settings are the operator's. Startup handlers may change them.
	Settings *Settings
	// Log names the activity in every line.
	Log *slog.Logger
	// API is how the handler reaches the cluster. It is nil for startup and login
	// handlers, which run before there are credentials, and for cleanup handlers of
	// an operator that did not get so far. After an election, cleanup handlers can
	// only read: the lease is given up already.
	API Client
	// Retry is the number of attempts made before this one.
	Retry int
	// Started is the time of the first attempt.
	Started time.Time
}

// ActivityFunc is a handler of the operator's own life.
type ActivityFunc func(ctx context.Context, a *Activity) error

// LoginFunc finds credentials for the cluster; nil for none.
type LoginFunc func(ctx context.Context, a *Activity) (*Login, error)

// ProbeFunc measures something about the operator; nil for nothing.
type ProbeFunc func(ctx context.Context, a *Activity) (any, error)

// Login is where the cluster is, and who we are there.
type Login struct {
	// Config has the server and the credentials; limits of rates in it do not
	// count. Whatever client-go can refresh by itself is refreshed: exec plugins,
	// token files, OIDC.
	Config *rest.Config
	// Namespace is where to put what belongs to no namespace, such as events about
	// cluster-scoped objects; "" for "default".
	Namespace string
	// Priority chooses among several logins: the highest one wins, and the others
	// are there in case the cluster refuses it.
	Priority int
	// Expires is when a new login is needed; zero for never.
	Expires time.Time
}

// ActivityOption tunes a handler of the operator's own life.
type ActivityOption interface{ activity(*activitySpec) }

type activitySpec struct{ limits registry.Limits }

func (o RetryOption) activity(s *activitySpec) { o(&s.limits) }

// What an operator does beside handling objects.
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
	limits    registry.Limits
	call      func(context.Context, *Activity) (any, error)
}

// OnStartup calls fn before the operator does anything else, in particular
// before it talks to the cluster. If it fails for good, the operator does not
// start.
func (op *Operator) OnStartup(id string, fn ActivityFunc, opts ...ActivityOption) {
	op.declareActivity(startup, id, fn == nil, func(ctx context.Context, a *Activity) (any, error) { return nil, fn(ctx, a) }, opts)
}

// OnCleanup calls fn at the very end, after all other handlers have stopped;
// also if the operator could not start. Its context is not cancelled by the stop
// of the operator.
func (op *Operator) OnCleanup(id string, fn ActivityFunc, opts ...ActivityOption) {
	op.declareActivity(cleanup, id, fn == nil, func(ctx context.Context, a *Activity) (any, error) { return nil, fn(ctx, a) }, opts)
}

// OnLogin calls fn for credentials: at the start, when those it returned expire,
// and when the cluster refuses them. With any login handler, the operator looks
// nowhere else, unless it is run with [Cluster] or [Kubeconfig]; see [LoginWithKubeconfig] and [LoginWithServiceAccount].
func (op *Operator) OnLogin(id string, fn LoginFunc, opts ...ActivityOption) {
	op.declareActivity(logins, id, fn == nil, func(ctx context.Context, a *Activity) (any, error) {
		l, err := fn(ctx, a)
		if l == nil {
			return nil, err // and not a nil in disguise
		}
		return l, err
	}, opts)
}

// OnProbe calls fn when somebody asks how the operator is, at most every 10 s.
// What it returns is shown; if it fails, the operator counts as sick. See
// [HealthSettings].
func (op *Operator) OnProbe(id string, fn ProbeFunc, opts ...ActivityOption) {
	op.declareActivity(probing, id, fn == nil, fn, opts)
}

func (op *Operator) declareActivity(kind activityKind, id string, empty bool, call ProbeFunc, opts []ActivityOption) {
	var spec activitySpec
	for _, o := range opts {
		o.activity(&spec)
	}
	switch {
	case id == "":
		op.problem("a %s handler has no id", kind)
	case empty:
		op.problem("handler %q has no function", id)
	}
	for _, p := range checkLimits(spec.limits) {
		op.problem("handler %q: %s", id, p)
	}
	for _, other := range op.activities[kind] {
		if other.id == id {
			op.problem("the %s handler %q is declared already at %s; give it another id", kind, id, other.where)
			return
		}
	}
	op.activities[kind] = append(op.activities[kind], activityHandler{id, caller(), spec.limits, func(ctx context.Context, a *Activity) (any, error) {
		result, err := call(ctx, a)
		return result, classify(err)
	}})
}
