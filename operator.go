package gopf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/storage"
)

// Operator is the declaration of an operator: its handlers and settings. Create one
// with [New]. It does nothing until [Operator.Run].
//
// Declarations are not safe for concurrent use and must be complete before Run. While
// the operator runs, [Operator.Pause], [Operator.Unpause], [Resource.Wake] and indices
// may be used from any goroutine.
type Operator struct {
	// Settings has the defaults of [DefaultSettings] until changed.
	Settings Settings

	handlers   handler.Set // of all families
	daemons    map[*handler.Handler]*daemon.Spec
	indices    map[*handler.Handler]index.Target
	types      apiclient.Types
	activities map[activityKind][]activityHandler
	uses       []describe.Use
	problems   []error
	detached   bool                // it only collects the mistakes in filters of sub-handlers
	name       string              // see Identity; cut to 63 characters; "" means none
	own        PersistenceSettings // of the identity, for settings that leave them unset
	started    atomic.Bool
	running    atomic.Pointer[engine.Handle]    // nil before the operator runs
	counting   atomic.Pointer[execute.Observer] // metrics of activities; nil means none
	pauser     pauser
	hooks      hooks
}

// New returns an operator without handlers and with the default settings. Name it with
// [Identity]; without a name, it uses the names of Kopf. Declare
// handlers on handles from [For] or [Operator.Resource], then pass the operator to
// cli.Main, or call [Operator.Run]:
//
//	func main() {
//		op := gopf.New(gopf.Identity("databases.example.com"))
//		dbs := gopf.For[*Database](op, "example.com/v1/databases")
//		dbs.OnCreate("create", create)
//		cli.Main(op)
//	}
//
// An operator runs once. Several operators may run in one process; they share nothing.
func New(opts ...Option) *Operator {
	op := &Operator{
		Settings:   DefaultSettings(),
		own:        DefaultSettings().Persistence,
		daemons:    map[*handler.Handler]*daemon.Spec{},
		indices:    map[*handler.Handler]index.Target{},
		types:      apiclient.Types{},
		activities: map[activityKind][]activityHandler{},
	}
	for _, o := range opts {
		o(op)
	}
	return op
}

// Resource returns a handle for the objects of a resource without a Go type: handlers
// get them as [Unstructured]. The name is parsed as in [For].
//
//	op.Resource("kopf.dev/v1/kopfexamples").OnCreate("create", create)
//
// Read fields with [ValueAt], and change them with [Patch.Set].
func (op *Operator) Resource(name string) *Resource[Unstructured] {
	return For[Unstructured](op, name)
}

// Err returns all mistakes in the declarations so far as one *[DeclarationError], each
// with its file and line. nil means that there are none. It covers handlers and the
// webhook server; [Operator.Run] checks the other settings after the startup handlers.
// Call it in a unit test to check the declarations without a cluster.
func (op *Operator) Err() error {
	problems := slices.Clone(op.problems)
	if err := op.Settings.Admission.check(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return &DeclarationError{problems}
}

// Run runs the operator until ctx is done, then shuts it down gracefully and returns
// nil. It does not handle signals and never exits the process; package cli does both.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	if err := op.Run(ctx, gopf.Namespaces("team-*")); err != nil {
//		log.Fatal(err)
//	}
//
// Run returns an error if the declarations or settings are invalid, if a startup or
// cleanup handler fails permanently, if there are no credentials ([LoginError]), if the
// API server cannot be reached at startup (see [WaitForCluster]), or if the operator
// has run before. Later outages of the API server do not end it: the operator waits and
// reconnects.
//
// At shutdown, running handlers have [QueueingSettings.ExitTimeout] to return before
// their contexts are canceled. Unfinished handlers continue after the next start.
func (op *Operator) Run(ctx context.Context, opts ...RunOption) error {
	if err := op.Err(); err != nil {
		return err
	}
	if op.started.Swap(true) {
		return errors.New("run the operator: it has run before; create a new one with gopf.New()")
	}
	run := runOptions{log: slog.Default(), jitter: rand.Float64}
	for _, o := range opts {
		o(&run)
	}
	if len(op.handlers)+len(op.activities) == 0 {
		run.log.Warn("The operator has no handlers and does nothing. Declare handlers before it runs.")
	}
	return op.live(ctx, &run)
}

// checkStorages validates the storages and whether they can store the ids of the
// handlers.
func (op *Operator) checkStorages() error {
	var problems []error
	persistence, err := op.persistence()
	if err != nil {
		return err
	}
	for _, s := range []any{persistence.Progress, persistence.Base} {
		if v, ok := s.(storage.Validator); ok {
			problems = append(problems, v.Validate())
		}
	}
	if c, ok := persistence.Progress.(storage.IDChecker); ok {
		for _, h := range op.handlers.Of(handler.Changes) {
			if err := c.CheckID(h.ID); err != nil {
				problems = append(problems, fmt.Errorf("%s: handler %q: %w", h.Where, h.ID, err))
			}
		}
	}
	return errors.Join(problems...)
}

// adviseOnStorages logs the warnings of the storages about their configuration.
func (op *Operator) adviseOnStorages(log *slog.Logger) {
	var told []string
	persistence, _ := op.persistence() // checkStorages returned the error
	for _, s := range []any{persistence.Progress, persistence.Base} {
		if a, ok := s.(storage.Adviser); ok {
			told = append(told, a.Advice()...)
		}
	}
	slices.Sort(told)
	for _, advice := range slices.Compact(told) {
		log.Warn("Doubtful declaration: " + advice + ".")
	}
}

// DeclarationError has all mistakes in the declarations of an operator, each with the
// file and line of the declaration.
type DeclarationError struct{ Problems []error }

func (e *DeclarationError) Error() string {
	return fmt.Sprintf("invalid operator declaration:\n%v", errors.Join(e.Problems...))
}

func (e *DeclarationError) Unwrap() []error { return e.Problems }

// declare adds a handler, and reports its mistakes.
func (op *Operator) declare(h *handler.Handler) {
	if op.detached {
		op.problem("handler %q is declared on the filters of a sub-handler; declare it on a handle of the operator", h.ID)
		return
	}
	for _, id := range append([]string{h.ID}, h.Formerly...) {
		if err := checkID(id); err != nil {
			op.problem("%w", err)
			return
		}
	}
	for _, other := range op.handlers {
		if other.ID == h.ID && other.Of.String() == h.Of.String() && other.Overlaps(h) {
			op.problem("duplicate handler %q, first declared at %s for the same reasons: both would share one record; use another id", h.ID, other.Where)
			return
		}
	}
	op.checkHandler(h)
	op.handlers = append(op.handlers, h)
}

func (op *Operator) problem(format string, args ...any) {
	op.problems = append(op.problems, fmt.Errorf("%s: %w", caller(), fmt.Errorf(format, args...)))
}

// caller returns the file and line of the first caller outside of this package.
func caller() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, "gopf.dev/gopf.") && !strings.HasSuffix(f.File, "_test.go")
		if !own || !more {
			return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File)), f.Line)
		}
	}
}
