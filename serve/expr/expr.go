// Package expr evaluates CEL expressions, and templates of objects with ${…} expressions.
package expr

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Env is an environment of expressions: the names of variables that they may use.
type Env struct{ env *cel.Env }

// NewEnv returns an environment with variables of any type. extra options may declare the
// types of variables instead.
func NewEnv(variables []string, extra ...cel.EnvOption) (*Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Sets(), ext.Encoders(), ext.Math(), ext.Bindings(),
		cel.CrossTypeNumericComparisons(true), cel.HomogeneousAggregateLiterals(),
	}
	options = append(options, boundedFunctions()...)
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(append(options, extra...)...)
	if err != nil {
		return nil, err
	}
	return &Env{env}, nil
}

// Expr is a compiled expression.
type Expr struct {
	text    string
	program cel.Program
	slots   int // see [meter.values]
	bool    bool
}

// Compile compiles an expression. Its type must be one of JSON, or unknown.
func (e *Env) Compile(text string) (*Expr, error) {
	ast, issues := e.env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("expression %q: %s", text, firstIssue(issues))
	}
	p := newPlan(ast.NativeRep())
	program, err := e.env.Program(ast, cel.CustomDecoratorV2(p.decorate))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return &Expr{text: text, program: program, slots: p.slots, bool: ast.OutputType() == cel.BoolType || ast.OutputType() == cel.DynType}, nil
}

// CompileBool compiles an expression that must be true or false.
func (e *Env) CompileBool(text string) (*Expr, error) {
	x, err := e.Compile(text)
	if err == nil && !x.bool {
		return nil, fmt.Errorf("expression %q is not true or false", text)
	}
	return x, err
}

func firstIssue(issues *cel.Issues) string {
	if list := issues.Errors(); len(list) > 0 {
		return strings.ReplaceAll(list[0].Message, "\n", " ")
	}
	return issues.Err().Error()
}

// Eval evaluates the expression and returns its value as decoded JSON: integers are int64.
// A value that is larger than an object can be is an error. So is an evaluation that costs too
// much, that takes too long, or whose context ends. A variable may be a func() any, which returns
// its value: it is called when an expression needs it, and vars has the value afterwards.
func (x *Expr) Eval(ctx context.Context, vars map[string]any) (any, error) {
	ctx, cancel := withTime(ctx)
	defer cancel()
	left := budget(maxSize)
	return x.eval(ctx, vars, &left)
}

func (x *Expr) eval(ctx context.Context, vars map[string]any, left *budget) (any, error) {
	v, err := x.evaluate(ctx, vars)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", x.text, err)
	}
	value, err := left.toJSON(v)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", x.text, err)
	}
	return value, nil
}

// Bool evaluates an expression that must be true or false.
func (x *Expr) Bool(ctx context.Context, vars map[string]any) (bool, error) {
	v, err := x.Eval(ctx, vars)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("expression %q is %v, not true or false", x.text, v)
	}
	return b, nil
}

// Constant returns the value of a condition that depends on no variable. ok is false for other
// conditions.
func (x *Expr) Constant() (value, ok bool) {
	value, err := x.Bool(context.Background(), nil)
	return value, err == nil
}

// absent is the value of an optional without a value. Templates leave out its key.
type absent struct{}

// toJSON converts a value of CEL. It fails if the value is larger than the budget.
func (b *budget) toJSON(v ref.Val) (any, error) {
	if err := b.spend(0); err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(x), nil
	case types.Int:
		return int64(x), nil
	case types.Uint:
		return int64(x), nil //nolint:gosec // JSON of the API has no larger integers
	case types.Double:
		return float64(x), nil
	case types.String:
		return string(x), b.spend(len(x))
	case types.Bytes:
		if err := b.spend(base64.StdEncoding.EncodedLen(len(x))); err != nil {
			return nil, err
		}
		return base64.StdEncoding.EncodeToString(x), nil
	case types.Timestamp, types.Duration:
		text, err := v.ConvertToNative(reflect.TypeFor[string]())
		if err != nil {
			return jsonOf(v)
		}
		return text, nil
	case *types.Optional:
		if !x.HasValue() {
			return absent{}, nil
		}
		return b.toJSON(x.GetValue())
	case traits.Mapper:
		m := map[string]any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			value, err := b.toJSON(x.Get(key))
			if err != nil {
				return nil, err
			}
			if _, left := value.(absent); !left {
				name := fmt.Sprint(key.Value())
				if err := b.spend(len(name)); err != nil {
					return nil, err
				}
				m[name] = value
			}
		}
		return m, nil
	case traits.Lister:
		list := []any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			value, err := b.toJSON(it.Next())
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	return nil, fmt.Errorf("a value of the type %s has no JSON form", v.Type())
}

// jsonOf converts a value by its JSON text.
func jsonOf(v ref.Val) (any, error) {
	text, err := jsonvalue.Marshal(v.Value())
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(text, &out)
}

// sortedKeys returns the keys of a map in order, for stable messages.
func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
