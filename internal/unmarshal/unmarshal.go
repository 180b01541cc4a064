// Package unmarshal decodes JSON into users' Go types, as the Kubernetes libraries do, in half
// of the time.
package unmarshal

import (
	"reflect"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	kjson "sigs.k8s.io/json"
)

// options select the behavior of encoding/json, with case-sensitive names.
var options = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false))

// Into decodes JSON into the value that a pointer refers to. The result and the error are
// those of [kjson.UnmarshalCaseSensitivePreserveInts]: names are case-sensitive, and in fields
// of type any, integers are int64. After an error, the fields that fit are set.
//
// The faster decoder is used for types that both decoders understand in the same way: without
// interfaces and unusual tags. If it fails, the text is decoded again for the error.
func Into(text []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().IsZero() && isPlain(v.Type().Elem()) {
		if json.Unmarshal(text, into, options) == nil {
			return nil
		}
		v.Elem().SetZero()
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}
