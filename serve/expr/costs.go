package expr

import (
	"math/bits"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// textCost is the number of bytes of a text that cost 1, as in cel-go.
const textCost = 10

// zoneCost is the cost of a time zone: its rules are read from a file.
const zoneCost = 100

// argumentsCost returns the cost of the arguments of a call. The caller charges it before the
// call runs: a single call with large arguments may take minutes. The result is exact up to the
// limit.
//
// A function that is not named here reads its texts and the items of its lists once.
func argumentsCost(function string, args []ref.Val, limit int) int {
	switch function {
	case operators.Equals, operators.NotEquals:
		return equalCost(args[0], args[1], limit)
	case operators.In, operators.OldIn:
		return inCost(args[0], args[1], limit)
	case operators.Add:
		if _, ok := args[0].(traits.MutableLister); ok {
			return sizeOf(args[1]) // a loop appends an item
		}
		return textSize(args[0])/textCost + textSize(args[1])/textCost // lists are not copied
	case operators.NotStrictlyFalse, operators.LogicalNot, "first", "last", "type", "dyn", "optional.of", "optional.none", "hasValue", "value":
		return 0
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return min(textSize(args[0]), textSize(args[1])) / textCost
	case "startsWith", "endsWith":
		return textSize(args[1]) / textCost
	case "size", "slice":
		return textSize(args[0]) / textCost // the items of a slice are part of the result
	case "contains", "indexOf", "lastIndexOf", "split", "replace":
		return searchCost(args)
	case "sort", "@sortByAssociatedKeys":
		keys := args[len(args)-1]
		return deepCost(keys, limit) * (1 + bits.Len(uint(sizeOf(keys)))) //nolint:gosec // it is not negative
	case "distinct":
		return sizeOf(args[0]) * deepCost(args[0], limit)
	case "sets.contains", "sets.intersects", "sets.equivalent":
		return 2 * min(sizeOf(args[0])*deepCost(args[1], limit), sizeOf(args[1])*deepCost(args[0], limit))
	case "json.encode", "format":
		cost, number := 0, 0
		if function == "format" {
			number = formatNumber
		}
		for _, arg := range args {
			cost += formatCost(arg, number, limit-cost)
		}
		return cost
	case "strings.quote":
		return textSize(args[0]) / formatText
	case "flatten":
		levels := types.IntOne
		if len(args) > 1 {
			levels, _ = args[1].(types.Int)
		}
		return flattenCost(args[0], levels, limit)
	}
	if strings.HasPrefix(function, "get") && len(args) == 2 {
		return zoneCost + textSize(args[1])/textCost
	}
	cost := 0
	for _, arg := range args {
		cost += textSize(arg) / textCost
		if list, ok := arg.(traits.Lister); ok {
			cost += sizeOf(list)
		}
	}
	return cost
}

// resultCost returns the cost of the result of a call.
func resultCost(function string, result ref.Val) int {
	switch function {
	case "split", "slice", "flatten", "lists.range":
		return sizeOf(result)
	}
	return textSize(result) / textCost
}

// searchCost returns the cost of a search for a text, as in cel-go. In the worst case, it
// compares the text at each place.
func searchCost(args []ref.Val) int {
	if len(args) < 2 {
		return 0
	}
	return (1 + textSize(args[0])/textCost) * (1 + textSize(args[1])/textCost)
}

// equalCost returns the cost of a comparison. It ends early if types or sizes differ.
func equalCost(a, b ref.Val, limit int) int {
	switch a.(type) {
	case traits.Lister, traits.Mapper:
		if a.Type() != b.Type() || sizeOf(a) != sizeOf(b) {
			return 0
		}
		cost := deepCost(a, limit)
		return min(cost, deepCost(b, cost))
	case *types.Optional:
		cost := deepCost(a, limit)
		return min(cost, deepCost(b, cost))
	}
	return min(textSize(a), textSize(b)) / textCost
}

// inCost returns the cost of a search in a list or map.
func inCost(item, list ref.Val, limit int) int {
	if _, ok := list.(traits.Lister); !ok {
		return textSize(item) / textCost
	}
	n, each := sizeOf(list), deepCost(item, limit)
	if each == 1 {
		return n
	}
	return n + min(n*each, deepCost(list, limit))
}

// Costs of a text with all values of an argument. Making it takes much more memory than the
// argument has. With these costs, it is about 32 bytes for each unit.
const (
	formatValue = 5
	formatList  = 15 // in addition
	formatMap   = 20 // in addition, and for each entry
	formatText  = 4  // the number of bytes that cost 1; so the text has at most 4 MB
	// formatNumber is the cost of a number in addition, if a text decides about its form: %.99f
	// makes up to 409 bytes.
	formatNumber = 100
)

// formatCost returns the cost of a text with a value, including those of lists and maps. A list
// can have the same large text many times, so the text must not be made first. number is the
// cost of each number, in addition. formatCost stops counting beyond the limit.
func formatCost(v ref.Val, number, limit int) int {
	cost := formatValue
	switch x := v.(type) {
	case *types.Optional:
		if x.HasValue() {
			cost += formatCost(x.GetValue(), number, limit)
		}
	case traits.Mapper:
		cost += formatMap
		for it := x.Iterator(); cost <= limit && it.HasNext() == types.True; {
			key := it.Next()
			cost += formatMap + formatCost(key, number, limit-cost)
			cost += formatCost(x.Get(key), number, limit-cost)
		}
	case traits.Lister:
		cost += formatList
		for it := x.Iterator(); cost <= limit && it.HasNext() == types.True; {
			cost += formatCost(it.Next(), number, limit-cost)
		}
	case types.String:
		cost += len(x)/formatText + escapes(string(x))
	case types.Double, types.Int, types.Uint:
		cost += number
	default:
		cost += textSize(v) / formatText
	}
	return cost
}

// escapes returns the number of characters that JSON writes as several.
func escapes(s string) (n int) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			n++
		}
	}
	return n
}

// flattenCost returns the cost of the items that flatten visits on so many levels. They are
// visited twice, here and by the call. It stops counting beyond the limit.
func flattenCost(v ref.Val, levels types.Int, limit int) int {
	list, ok := v.(traits.Lister)
	if !ok || levels < 0 {
		return 2
	}
	cost := 2
	for it := list.Iterator(); cost <= limit && it.HasNext() == types.True; {
		cost += flattenCost(it.Next(), levels-1, limit-cost)
	}
	return cost
}

// deepCost returns the number of values in a value, plus the costs of their texts. It stops
// counting beyond the limit.
func deepCost(v ref.Val, limit int) int {
	cost := 1
	switch x := v.(type) {
	case *types.Optional:
		if x.HasValue() {
			cost += deepCost(x.GetValue(), limit)
		}
	case traits.Mapper:
		for it := x.Iterator(); cost <= limit && it.HasNext() == types.True; {
			key := it.Next()
			cost += textSize(key)/textCost + deepCost(x.Get(key), limit-cost)
		}
	case traits.Lister:
		for it := x.Iterator(); cost <= limit && it.HasNext() == types.True; {
			cost += deepCost(it.Next(), limit-cost)
		}
	default:
		cost += textSize(v) / textCost
	}
	return cost
}

// textSize returns the number of bytes of a text. It is 0 for other values.
func textSize(v ref.Val) int {
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	}
	return 0
}

// sizeOf returns the number of items of a list or map. It is 0 for other values.
func sizeOf(v ref.Val) int {
	switch x := v.(type) {
	case traits.Lister:
		return int(x.Size().(types.Int))
	case traits.Mapper:
		return int(x.Size().(types.Int))
	}
	return 0
}
