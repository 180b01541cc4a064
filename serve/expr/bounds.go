package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxSize limits the value of a template or of an expression, in bytes of JSON. The API
// server stores no larger objects. An expression can multiply the values of an object: a list
// of 10,000 items, each with the same text of 1 MB, is 10 GB. maxText limits the result of
// one function.
const (
	maxSize = 4 << 20
	maxText = maxSize
)

// maxRange limits the items of lists.range. Its argument may be a number of an object: a tiny
// object must not make a list that takes megabytes.
const maxRange = 10_000

// leastSize is the size that counts for each value. It bounds the number of values.
const leastSize = 8

var errSize = fmt.Errorf("the value is larger than %d MiB", maxSize>>20)

// budget is the size that a value may still have.
type budget int

// spend counts a value. n is the length of its text.
func (b *budget) spend(n int) error {
	if *b -= budget(n + leastSize); *b < 0 {
		return errSize
	}
	return nil
}

// boundedFunctions replaces the functions whose results can be much larger than their
// arguments. The cost of a result counts only when the call has ended: see [resultCost].
func boundedFunctions() []cel.EnvOption {
	texts, list := []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.ListType(cel.StringType)
	items, anything := cel.ListType(cel.TypeParamType("T")), cel.ListType(cel.DynType)
	return []cel.EnvOption{
		cel.Function("flatten",
			cel.MemberOverload("list_flatten", []*cel.Type{cel.ListType(items)}, items, cel.UnaryBinding(func(v ref.Val) ref.Val { return flatten(v, types.IntOne) })),
			cel.MemberOverload("list_flatten_int", []*cel.Type{anything, cel.IntType}, anything, cel.BinaryBinding(flatten))),
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", texts, cel.StringType, cel.FunctionBinding(replace)),
			cel.MemberOverload("string_replace_string_string_int", append(texts, cel.IntType), cel.StringType, cel.FunctionBinding(replace))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{list}, cel.StringType, cel.UnaryBinding(func(v ref.Val) ref.Val { return join(v, types.String("")) })),
			cel.MemberOverload("list_join_string", []*cel.Type{list, cel.StringType}, cel.StringType, cel.BinaryBinding(join))),
	}
}

// replace is strings.Replace with a limit of the result.
func replace(args ...ref.Val) ref.Val {
	s, old, by := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	n := -1
	if len(args) > 3 {
		n = int(args[3].(types.Int))
	}
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	if growth := len(by) - len(old); growth > 0 && found > (maxText-min(len(s), maxText))/growth {
		return types.WrapErr(errors.New("replace: the text is too large"))
	}
	return types.String(strings.Replace(s, old, by, n))
}

// join joins a list of texts, with a limit of the result.
func join(list, separator ref.Val) ref.Val {
	var b strings.Builder
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		item, ok := it.Next().(types.String)
		if !ok {
			return types.WrapErr(errors.New("join: an item is not a text"))
		}
		if b.Len()+len(item)+len(separator.(types.String)) > maxText {
			return types.WrapErr(errors.New("join: the text is too large"))
		}
		b.WriteString(string(item))
		if it.HasNext() == types.True {
			b.WriteString(string(separator.(types.String)))
		}
	}
	return types.String(b.String())
}

// maxItems limits the items of a flattened list: no value has more.
const maxItems = maxSize / leastSize

var errItems = errors.New("the list is too large")

// flatten replaces lists in a list by their items, on so many levels.
func flatten(v, levels ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	depth, isNumber := levels.(types.Int)
	switch {
	case !ok || !isNumber:
		return types.NewErr("no such overload: %v.flatten(%v)", v.Type(), levels.Type())
	case depth < 0:
		return types.NewErr("level must be non-negative")
	}
	flat := []ref.Val{}
	if !flattenInto(&flat, list, depth) {
		return types.WrapErr(errItems)
	}
	return types.DefaultTypeAdapter.NativeToValue(flat)
}

// flattenInto adds the items of a list. It returns false if there are too many.
func flattenInto(flat *[]ref.Val, list traits.Lister, depth types.Int) bool {
	for it := list.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		if inner, ok := item.(traits.Lister); ok && depth > 0 {
			if !flattenInto(flat, inner, depth-1) {
				return false
			}
			continue
		}
		if *flat = append(*flat, item); len(*flat) > maxItems {
			return false
		}
	}
	return true
}
