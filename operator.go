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

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// Operator is the declaration of an operator: its handlers and settings. It
// does nothing until [Operator.Run].
type Operator struct {
	// Settings tune how the operator works; they hold the defaults until changed.
	Settings Settings

	handlers   registry.Set // of all families
	daemons    map[*registry.Handler]*daemon.Spec
	indices    map[*registry.Handler]index.Target
	types      kinds
	activities map[activityKind][]activityHandler
	problems   []error
	started    atomic.Bool
	running    atomic.Pointer[engine.Handle]    // nil until it runs
	counting   atomic.Pointer[execute.Observer] // of activities; nil if nobody wants to know
	freezer    freezer
}

// New returns an operator with no handlers and the default settings.
func New() *Operator {
	return &Operator{
		Settings:   DefaultSettings(),
		daemons:    map[*registry.Handler]*daemon.Spec{},
		indices:    map[*registry.Handler]index.Target{},
		types:      kinds{},
		activities: map[activityKind][]activityHandler{},
	}
}

// Resource declares handlers for objects without a Go type of their own. The
// name is read as in [For].
func (op *Operator) Resource(name string) *Resource[Unstructured] {
	return For[Unstructured](op, name)
}

// Err reports everything wrong with the declarations made so far, each problem
// with the file and line that made it, as a *[DeclarationError].
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

// Run serves the cluster until ctx is done, then stops gracefully and returns
// nil. An operator runs once; several operators may run in one process.
//
// It returns an error if the declarations are wrong, if a startup or cleanup
// handler fails, if there is no way to reach a cluster, or if the cluster cannot
// be reached at the start. Later failures of the cluster do not end it.
func (op *Operator) Run(ctx context.Context, opts ...RunOption) error {
	if err := op.Err(); err != nil {
		return err
	}
	if op.started.Swap(true) {
		return errors.New("this operator has been run before: make a new one with gopf.New()")
	}
	run := runOptions{log: slog.Default(), jitter: rand.Float64}
	for _, o := range opts {
		o(&run)
	}
	if len(op.handlers)+len(op.activities) == 0 {
		run.log.Warn("The operator has no handlers: nothing will be done about any objects. Declare some before it runs.")
	}
	return op.live(ctx, &run)
}

// checkStorages asks the storages whether they can do what they are set up for.
func (op *Operator) checkStorages() error {
	var problems []error
	for _, s := range []any{op.Settings.Persistence.Progress, op.Settings.Persistence.Base} {
		if v, ok := s.(storage.Validator); ok {
			problems = append(problems, v.Validate())
		}
	}
	if c, ok := op.Settings.Persistence.Progress.(storage.IDChecker); ok {
		for _, h := range op.handlers.Of(registry.Changes) {
			if err := c.CheckID(h.ID); err != nil {
				problems = append(problems, fmt.Errorf("%s: handler %q: %w", h.Where, h.ID, err))
			}
		}
	}
	return errors.Join(problems...)
}

// adviseOnStorages logs what is doubtful about the storages.
func (op *Operator) adviseOnStorages(log *slog.Logger) {
	var told []string
	for _, s := range []any{op.Settings.Persistence.Progress, op.Settings.Persistence.Base} {
		if a, ok := s.(storage.Adviser); ok {
			told = append(told, a.Advice()...)
		}
	}
	slices.Sort(told)
	for _, advice := range slices.Compact(told) {
		log.Warn("Doubtful declaration: " + advice + ".")
	}
}

// DeclarationError tells what is wrong with the declarations of an operator.
type DeclarationError struct{ Problems []error }

func (e *DeclarationError) Error() string {
	return fmt.Sprintf("the operator is declared wrongly:\n%v", errors.Join(e.Problems...))
}

func (e *DeclarationError) Unwrap() []error { return e.Problems }

// declare adds a handler, if nothing is wrong with it.
func (op *Operator) declare(h *registry.Handler) {
	for _, id := range append([]string{h.ID}, h.Formerly...) {
		if err := checkID(id); err != nil {
			op.problem("%w", err)
			return
		}
	}
	for _, other := range op.handlers {
		if other.ID == h.ID && other.Of.String() == h.Of.String() && other.Overlaps(h) {
			op.problem("handler %q is declared already at %s for the same reasons: the two would share one record; give it another id", h.ID, other.Where)
			return
		}
	}
	op.checkHandler(h)
	op.handlers = append(op.handlers, h)
}

func (op *Operator) problem(format string, args ...any) {
	op.problems = append(op.problems, fmt.Errorf("%s: %w", caller(), fmt.Errorf(format, args...)))
}

// caller finds the first line of code outside of this package: the user's.
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
