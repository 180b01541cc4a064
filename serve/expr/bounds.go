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
// arguments. The limit of the costs counts a result only when it exists.
func boundedFunctions() []cel.EnvOption {
	texts, list := []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.ListType(cel.StringType)
	return []cel.EnvOption{
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
