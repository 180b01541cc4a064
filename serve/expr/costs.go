package expr

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// costs adds the sizes of texts to the costs of calls. Without it, a call costs 1 if its
// overload is found only when it runs, such as that of + for variables of any type. Then an
// expression could copy a large text of an object a million times.
type costs struct{}

// textCost is the number of bytes of a text that cost 1, as in cel-go.
const textCost = 10

// CallCost returns the costs of a call after it has run. nil means those of cel-go.
func (costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	size := textSize(result)
	switch {
	case overload == "":
		for _, arg := range args {
			size += textSize(arg)
		}
	case function == "split":
		if list, ok := result.(traits.Lister); ok {
			size = textCost * int(list.Size().(types.Int)) // the items share the text
		}
	}
	if size == 0 {
		return nil
	}
	cost := uint64(1 + size/textCost) //nolint:gosec // it is not negative
	return &cost
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
