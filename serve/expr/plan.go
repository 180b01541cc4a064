package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Costs of steps, as in cel-go.
const (
	readCost = 1 // of a variable and of each field
	callCost = 1 // in addition to that of the arguments
	listCost = 10
	mapCost  = 30
)

// plan makes the steps of a program pay for their values: see [meter].
type plan struct {
	slots  int
	ranges map[int64]bool // the ids of the expressions that loops iterate
}

func newPlan(parsed *ast.AST) *plan {
	p := &plan{ranges: map[int64]bool{}}
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			p.mark(e.AsComprehension().IterRange())
		}
	}))
	return p
}

// mark records the id of a range. The step that reads a field has the id of the variable.
func (p *plan) mark(e ast.Expr) {
	for {
		p.ranges[e.ID()] = true
		switch {
		case e.Kind() == ast.SelectKind:
			e = e.AsSelect().Operand()
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
			e = e.AsCall().Args()[0]
		default:
			return
		}
	}
}

// account has the costs of a step.
type account struct {
	slot     int    // of its value
	cost     int    // for each run
	function string // that the step calls; "" means none
	ranged   bool   // a loop may iterate the value
	next     *call  // the call of which it is the last argument; nil means none
}

// call is a call that pays before it runs: when its last argument is there.
type call struct {
	function string
	args     []argument
}

// argument is a constant, or the value in a slot.
type argument struct {
	constant ref.Val
	slot     int
}

func (a *account) own() *account { return a }

// pay charges the meter for a step with the value v, and for the call that follows.
func (a *account) pay(vars interpreter.Activation, v ref.Val) {
	m := meterOf(vars)
	if m == nil {
		return
	}
	m.values[a.slot] = v
	cost := a.cost
	if a.function != "" {
		cost += resultCost(a.function, v)
	}
	if items, ok := v.(traits.Mapper); ok && a.ranged {
		cost += sizeOf(items) // a loop begins with a copy of the keys
	}
	m.charge(cost)
	if a.next == nil {
		return
	}
	args := make([]ref.Val, len(a.next.args))
	for i, arg := range a.next.args {
		if args[i] = arg.constant; arg.constant == nil {
			args[i] = m.values[arg.slot]
		}
	}
	m.charge(argumentsCost(a.next.function, args, m.left))
}

// step is a step of a program that pays for its value.
type step struct {
	interpreter.InterpretableV2
	account
}

// Exec implements [interpreter.InterpretableV2].
func (s *step) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := s.InterpretableV2.Exec(frame)
	s.pay(frame, v)
	return v
}

// Eval implements [interpreter.Interpretable].
func (s *step) Eval(vars interpreter.Activation) ref.Val { return s.Exec(interpreter.AsFrame(vars)) }

// read is a step that reads a variable and its fields.
type read struct {
	interpreter.InterpretableAttribute
	account
}

// AddQualifier implements [interpreter.InterpretableAttribute].
func (r *read) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	r.cost += readCost
	_, err := r.InterpretableAttribute.AddQualifier(q)
	return r, err
}

// Exec implements [interpreter.InterpretableV2].
func (r *read) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := r.InterpretableAttribute.Exec(frame)
	r.pay(frame, v)
	return v
}

// Eval implements [interpreter.Interpretable].
func (r *read) Eval(vars interpreter.Activation) ref.Val { return r.Exec(interpreter.AsFrame(vars)) }

// decorate returns a step that pays. Constants cost nothing.
func (p *plan) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch x := i.(type) {
	case *step, *read, interpreter.InterpretableConst:
		return i, nil // a field was added to it
	case interpreter.InterpretableAttribute:
		return &read{x, p.account(i, readCost)}, nil
	case interpreter.InterpretableConstructor:
		if constant(x.InitVals()) {
			return interpreter.NewConstValue(x.ID(), x.Eval(interpreter.EmptyActivation())), nil
		}
		cost := mapCost
		if x.Type() == types.ListType {
			cost = listCost
		}
		return &step{i, p.account(i, cost)}, nil
	case interpreter.InterpretableCall:
		if x.Function() == "matches" && len(x.Args()) == 2 {
			match, err := newMatch(x)
			if err != nil {
				return nil, err
			}
			return &step{match, p.account(i, callCost)}, nil
		}
		a := p.account(i, callCost)
		a.function = x.Function()
		a.cost += charge(x)
		return &step{i, a}, nil
	}
	return &step{i, p.account(i, 0)}, nil // a loop, a condition, or a step of an optional
}

func (p *plan) account(i interpreter.InterpretableV2, cost int) account {
	p.slots++
	return account{slot: p.slots - 1, cost: cost, ranged: p.ranges[i.ID()]}
}

// charge makes the last argument of a call pay for it. If all arguments are constants, it returns
// the cost instead.
func charge(x interpreter.InterpretableCall) int {
	c, last := &call{function: x.Function()}, (*account)(nil)
	var constants []ref.Val
	for _, arg := range x.Args() {
		if value, ok := arg.(interpreter.InterpretableConst); ok {
			c.args = append(c.args, argument{constant: value.Value()})
			constants = append(constants, value.Value())
			continue
		}
		last = arg.(interface{ own() *account }).own()
		c.args = append(c.args, argument{slot: last.slot})
	}
	if last == nil {
		return argumentsCost(c.function, constants, costLimit)
	}
	last.next = c
	return 0
}

func constant(values []interpreter.InterpretableV2) bool {
	for _, v := range values {
		if _, ok := v.(interpreter.InterpretableConst); !ok {
			return false
		}
	}
	return true
}
