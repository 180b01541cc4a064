package object

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/footprint"
)

func TestIdentityIsReadWithoutDecoding(t *testing.T) {
	b, err := Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns","uid":"u1","resourceVersion":"42","deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"uid":"other"}},"spec":{"name":"not me"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "a", UID: "u1", ResourceVersion: "42", Deleting: true}
	if diff := cmp.Diff(want, b.Identity); diff != "" {
		t.Errorf("identity: -want +got\n%s", diff)
	}
	if v, ok := b.Version(); v != 42 || !ok {
		t.Errorf("version: got %d, %v", v, ok)
	}
}

func TestManagedFieldsAreDropped(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"in the middle": {`{"metadata":{"name":"a","managedFields":[{"x":"}"}],"uid":"u"},"spec":{}}`, `{"metadata":{"name":"a","uid":"u"},"spec":{}}`},
		"first":         {`{"metadata":{"managedFields":[],"uid":"u"}}`, `{"metadata":{"uid":"u"}}`},
		"last":          {`{"metadata":{"uid":"u","managedFields":[1]}}`, `{"metadata":{"uid":"u"}}`},
		"alone":         {`{"metadata":{"managedFields":[1]}}`, `{"metadata":{}}`},
		"spaced":        {"{ \"metadata\" : {\n \"uid\" : \"u\" ,\n \"managedFields\" : [ 1 ] , \"name\":\"n\" } }", "{ \"metadata\" : {\n \"uid\" : \"u\"  , \"name\":\"n\" } }"},
		"elsewhere":     {`{"metadata":{"uid":"u"},"spec":{"managedFields":[1]}}`, `{"metadata":{"uid":"u"},"spec":{"managedFields":[1]}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Parse([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(b.Raw())); diff != "" {
				t.Errorf("raw: -want +got\n%s", diff)
			}
			if b.Map() == nil {
				t.Error("the remaining JSON cannot be decoded")
			}
		})
	}
}

func TestMalformedObjectsAreRejected(t *testing.T) {
	for _, in := range []string{``, `[]`, `null`, `{"metadata":`, `{"metadata":{"name":"a"}`, `{"a":1,}`} {
		if b, err := Parse([]byte(in)); err == nil {
			t.Errorf("%q: got %+v, want an error", in, b.Identity)
		}
	}
}

func TestListItemsGetTheirType(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"name":"a"}}`:              `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		`{"kind":"Pod","metadata":{"name":"a"}}`: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		`{}`:                                     `{"apiVersion":"v1","kind":"Pod"}`,
		`{"apiVersion":"v2","kind":"X"}`:         `{"apiVersion":"v2","kind":"X"}`,
	} {
		b, err := Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(b.WithType("v1", "Pod").Raw()); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestManagedFieldsStayOnlyInWholeObjects(t *testing.T) {
	const json = `{"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"kubectl"}],"uid":"u"},"status":{"phase":"Running"}}`
	for name, c := range map[string]struct {
		parse func([]byte) (*Body, error)
		want  bool
	}{"whole": {ParseWhole, true}, "usual": {Parse, false}} {
		b, err := c.parse([]byte(json))
		if err != nil {
			t.Fatal(err)
		}
		if _, got := b.Lookup("metadata", "managedFields"); got != c.want {
			t.Errorf("%s: has managedFields: %v", name, got)
		}
		phase, _ := b.Lookup("status", "phase")
		if b.Name != "a" || b.UID != "u" || phase != "Running" {
			t.Errorf("%s: got %+v with the phase %v", name, b.Identity, phase)
		}
	}
}

func TestObjectsThatAreTooLargeAsAGoTypeAreNotDecoded(t *testing.T) {
	type large struct {
		Items []struct{ Filler [1000]int } `json:"items"`
	}
	for n, refused := range map[int]bool{100: false, 10_000: true} {
		b := mustParse(t, []byte(`{"metadata":{"name":"a","uid":"u"},"items":[`+strings.Repeat("{},", n)+`{}]}`))
		var into large
		err := b.Decode(&into)
		if _, is := errors.AsType[*footprint.TooLargeError](err); is != refused || refused && into.Items != nil || !refused && len(into.Items) != n+1 {
			t.Errorf("%d elements: %v", n, err)
		}
	}
}

// The decoder of a duration quotes its text.
func TestLongErrorsOfDecodersAreCut(t *testing.T) {
	var into struct {
		Spec struct {
			Every metav1.Duration `json:"every"`
		} `json:"spec"`
	}
	for name, test := range map[string]struct {
		every string
		long  bool
	}{
		"short": {"soon", false},
		"long":  {strings.Repeat("é", 20_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustParse(t, fmt.Appendf(nil, `{"kind":"X","metadata":{"name":"x"},"spec":{"every":%q}}`, test.every))
			err := b.Decode(&into)
			if err == nil || len(err.Error()) > longestError || !strings.Contains(err.Error(), "invalid duration") {
				t.Fatalf("got %.100v", err)
			}
			if cut := strings.HasSuffix(err.Error(), "…"); cut != test.long {
				t.Errorf("cut: %v: %.200v", cut, err)
			}
			if test.long && errors.Unwrap(err) != nil {
				t.Error("the long error is kept")
			}
		})
	}
}
