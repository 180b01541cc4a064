package footprint

import (
	"reflect"
	"testing"

	kjson "sigs.k8s.io/json"
)

// The shortcut must not call an object small that the estimate calls large, and whatever
// passes the check can be decoded quickly.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"jobs":[{},null,{"spec":{"template":{"spec":{"containers":[{}]}}}}]}`, `{"limits":["1e9999","1",1e3]}`,
		`{"byName":{"a":{"resources":{"limits":{"cpu":"1e1000"}}}}}`, `{"tree":{"parent":{"children":[{}]},"named":{"a":{}}}}`, `{"any":{"a":[1,{}]},"anys":[[]]}`,
		`{"jobs":[{},`, `{"jobs":{"a":1}}`, `{"numbers":[[1],[]],"bytes":"YQ==","texts":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	of := Of(reflect.TypeFor[*jobs]())
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4<<10 {
			return
		}
		memory := of.Memory(text, 0)
		for _, limit := range []int{1 << 12, 1 << 16, 1 << 20} {
			if got := of.Memory(text, limit); got == 0 && memory > limit+of.size+of.elem.size {
				t.Errorf("%d bytes count as at most %d", memory, limit)
			} else if got != 0 && got != memory {
				t.Errorf("%d bytes, or %d", got, memory)
			}
		}
		if of.Check(text) == nil {
			_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &jobs{}) // it must not hang
		}
	})
}
