package expr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// costLimit bounds one evaluation, as the API server does for one rule. An evaluation that costs
// so much takes some tenths of a second.
const costLimit = 1_000_000

// timeLimit bounds an evaluation or a template in real time. The costs end it much earlier,
// unless they are wrong for a function. So the limit is generous: on a busy machine, an honest
// expression must not fail.
const timeLimit = 2 * time.Second

// checkInterval is the cost after which an evaluation checks whether its context has ended.
const checkInterval = 1000

var (
	errCost = fmt.Errorf("cost limit exceeded: for this object, the expression costs more than %d", costLimit)
	errTime = fmt.Errorf("the evaluation took longer than %v", timeLimit)
)

// withTime returns a context that also ends after the time limit of an evaluation.
func withTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeLimit, errTime)
}

// meter counts the costs of one evaluation, and ends the evaluation at its limits. It also has
// the variables of the evaluation, because the steps of a program only get those.
//
// The cost tracking of cel-go takes quadratic time: for each step, it searches a stack which
// grows with each iteration of a loop.
type meter struct {
	vars   map[string]any
	left   int // the cost that the evaluation may still have
	spent  int // since the last check of done
	done   <-chan struct{}
	cause  func() error // returns the reason after done is closed
	values []ref.Val    // the latest values of the steps, by their slots
	regex  *regex       // the latest regular expression of an object; nil means none
	err    error        // the limit that ended the evaluation
}

// meterName is the variable that has the meter. No expression can name it.
const meterName = "@meter"

// ResolveName implements [interpreter.Activation].
func (m *meter) ResolveName(name string) (any, bool) {
	if name == meterName {
		return m, true
	}
	v, ok := m.vars[name]
	if made, later := v.(func() any); later {
		v = made()
		m.vars[name] = v
	}
	return v, ok
}

// Parent implements [interpreter.Activation].
func (*meter) Parent() interpreter.Activation { return nil }

// meterOf returns the meter of an evaluation. nil means that a constant is evaluated while the
// program is compiled.
func meterOf(vars interpreter.Activation) *meter {
	v, _ := vars.ResolveName(meterName)
	m, _ := v.(*meter)
	return m
}

// charge counts costs. It ends the evaluation if they exceed the limit, or if the context has
// ended.
func (m *meter) charge(cost int) {
	if m.left -= cost; m.left < 0 {
		m.stop(errCost)
	}
	if m.spent += cost + 1; m.spent < checkInterval { // some steps cost nothing
		return
	}
	m.spent = 0
	select {
	case <-m.done:
		m.stop(m.cause())
	default:
	}
}

// stop ends the evaluation: cel-go recovers from this panic.
func (m *meter) stop(err error) {
	m.err = err
	panic(interpreter.EvalCancelledError{Message: err.Error()})
}

// evaluate runs the program of an expression.
func (x *Expr) evaluate(ctx context.Context, vars map[string]any) (ref.Val, error) {
	m := &meter{
		vars: vars, left: costLimit, done: ctx.Done(), cause: func() error { return context.Cause(ctx) },
		values: make([]ref.Val, x.slots),
	}
	v, _, err := x.program.Eval(m)
	if m.err != nil {
		return nil, m.err
	}
	if err == nil && v == nil {
		return nil, errors.New("there is no value")
	}
	return v, err
}
