package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScanningOddObjects(t *testing.T) {
	cases := map[string]struct{ in, name string }{
		"escaped names":        {`{"meta\u0064ata":{"n\u0061me":"a"}}`, "a"},
		"duplicate names":      {`{"metadata":{"name":"a"},"spec":{"x":1,"x":2}}`, "a"},
		"invalid metadata":     {`{"metadata":1}`, ""},
		"invalid name":         {`{"metadata":{"name":1}}`, ""},
		"an escaped last name": {`{"metadata":{"name":"\u00e4","\"":1}}`, "ä"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Parse([]byte(c.in))
			if err != nil || b.Name != c.name {
				t.Errorf("got %+v, %v", b, err)
			}
		})
	}
}

func TestPartsAreFoundWhereverTheyAre(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":          `{}`,
		"plain":            `{"metadata":{"name":"a"},"spec":1,"status":{"s":1}}`,
		"spaces":           ` {  "metadata" : { "name" : "a" } , "status" :  2 } `,
		"reversed":         `{"status":{"s":1},"spec":1,"metadata":{"name":"a"}}`,
		"managed first":    `{"metadata":{"managedFields":[{"a":"}"}],"name":"a"},"status":{"s":1}}`,
		"managed last":     `{"metadata":{"name":"a", "managedFields": [] },"spec":1,"status":{"s":1}}`,
		"managed alone":    `{"status":"before","metadata":{"managedFields":[]}}`,
		"escaped":          `{"meta\u0064ata":{"name":"a"},"st\u0061tus":null}`,
		"wrong types":      `{"metadata":1,"status":[]}`,
		"with types added": `{"kind":"K","metadata":{"name":"a","managedFields":[]},"status":{"s":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse([]byte(in))
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range []*Body{parsed, parsed.WithType("v1", "Kind"), parsed.Undecoded(), parsed.At("7")} {
				whole := b.Undecoded().Map()
				for _, member := range []string{"metadata", "status"} {
					want, wantOK := whole[member]
					got, ok := b.Undecoded().Lookup(member)
					if diff := cmp.Diff(want, got); ok != wantOK || diff != "" {
						t.Errorf("%s of %s: %v, -want +got\n%s", member, b.Raw(), ok, diff)
					}
				}
			}
		})
	}
}

func TestTheVersionIsReadWithoutTheRest(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"Table","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name"}],"rows":[]}`:                       "7",
		`{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"labels":{"resourceVersion":"2"},"resourceVersion":"7"},"rows":[`: "7",
		`{"metadata":{"resourceVersion":"7`:  "an error",
		`{"metadata":{"name":"x"}}`:          "",
		`{"metadata":null,"rows":[]}`:        "",
		`{"metadata":{"resourceVersion":7}}`: "",
		`{}`:                                 "",
		`[]`:                                 "an error",
		``:                                   "an error",
		`<html></html>`:                      "an error",
		`{"metadata":{"resourceVersion"`:     "an error",
	} {
		got, err := VersionOf([]byte(text))
		if err != nil {
			got = "an error"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q (%v)", text, got, want, err)
		}
	}
}
