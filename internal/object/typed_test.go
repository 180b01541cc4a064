package object

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"gopf.dev/gopf/internal/footprint"
)

// The queue asks for the memory several times while other turns wait. So the JSON is measured
// once for each type, whatever the outcome is.
func TestTheMemoryAsATypeIsMeasuredOnce(t *testing.T) {
	type item struct{ A, B, C, D, E, F, G, H string }
	type limited struct {
		Items  []item                       `json:"items"`
		Limits map[string]resource.Quantity `json:"limits"`
	}
	type other struct {
		Items []item `json:"items"`
	}
	const limit = 64 << 10
	of := footprint.Of(reflect.TypeFor[*limited]())
	for _, quantity := range []string{"1", "1e10000000"} {
		b, err := Parse(fmt.Appendf(nil, `{"metadata":{"name":"a","uid":"u"},"items":[%s{}],"limits":{"cpu":"%s"}}`, strings.Repeat("{},", 10_000), quantity))
		if err != nil {
			t.Fatal(err)
		}
		memory := b.MemoryAs(of, limit)
		if memory == 0 { // also if it is refused: it may be decoded as another type
			t.Errorf("%s: it takes no memory", quantity)
		}
		first := b.typed.Load()
		if first == nil || first.as != of || first.memory != memory {
			t.Fatalf("%s: the result is not kept", quantity)
		}
		if b.MemoryAs(of, limit) != memory || b.typed.Load() != first {
			t.Errorf("%s: it was measured again", quantity)
		}
		as := footprint.Of(reflect.TypeFor[*other]())
		second := b.MemoryAs(as, limit)
		both := b.typed.Load()
		if second == 0 || b.MemoryAs(of, limit) != memory || b.MemoryAs(as, limit) != second || b.typed.Load() != both {
			t.Errorf("%s: with two types, it was measured again", quantity)
		}
	}
}

func TestNothingIsKeptAboutSmallObjects(t *testing.T) {
	b, err := Parse([]byte(`{"metadata":{"name":"a","uid":"u"},"items":[{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if memory := b.MemoryAs(footprint.Of(reflect.TypeFor[struct{ Items []struct{} }]()), 64<<10); memory != 0 || b.typed.Load() != nil {
		t.Errorf("the memory is %d, and kept: %t", memory, b.typed.Load() != nil)
	}
}
