package object

import (
	"fmt"
	"strings"
	"testing"
)

// A client can make the managedFields of a tiny object large. Every form of the body knows it.
func TestManagedFieldsCountForWrites(t *testing.T) {
	const managed = 100 << 10
	entry := fmt.Sprintf(`"managedFields":[{"manager":%q}]`, strings.Repeat("m", managed))
	raw := fmt.Appendf(nil, `{"metadata":{"name":"a","uid":"u","resourceVersion":"1",%s},"spec":{}}`, entry)
	short, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := ParseWhole(raw)
	if err != nil {
		t.Fatal(err)
	}
	var p Packer
	typed := whole.WithType("v1", "A")
	for name, got := range map[string]int{
		"without managedFields":     short.WriteSize(),
		"with managedFields":        whole.WriteSize(),
		"with a type":               typed.WriteSize(),
		"cut later":                 typed.WithoutManagedFields().WriteSize(),
		"at a later version":        short.At("2").WriteSize(),
		"undecoded":                 short.Undecoded().WriteSize(),
		"packed":                    p.Pack(short).WriteSize(),
		"packed and unpacked":       p.PackQuickly(short).Body().WriteSize(),
		"the identity":              p.Identify(short).WriteSize(),
		"hollow":                    p.Pack(short).Hollow().WriteSize(),
		"packed, unpacked, and cut": p.Pack(short).Body().WithoutManagedFields().WriteSize(),
	} {
		if got < managedTimes*managed || got > managedTimes*(managed+1000) {
			t.Errorf("%s: got %d, want about %d", name, got, managedTimes*managed)
		}
	}
	if got := mustParse(t, []byte(`{"metadata":{"name":"a"}}`)).WriteSize(); got != 25 {
		t.Errorf("without any: got %d", got)
	}
}
