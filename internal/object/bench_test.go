package object

import (
	"strings"
	"testing"
)

// handled is an object of typical size and shape: some fields, a copy of them in an
// annotation, and managedFields.
var handled = []byte(`{"apiVersion":"bench.gopf.dev/v1","kind":"Widget","metadata":{"annotations":{"kopf.zalando.org/last-handled-configuration":"{\"spec\":{\"payload\":[` +
	strings.Repeat(`{\"name\":\"entry\",\"value\":\"volume1 claim2 namespace3 replica4 image5 port6 secret7\"},`, 9) + `{}]}}\n"},` +
	`"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"app":"bench"},"managedFields":[{"manager":"gopf","operation":"Update","fieldsV1":{` +
	strings.Repeat(`"f:metadata":{"f:annotations":{".":{},"f:kopf.zalando.org/last-handled-configuration":{}}},`, 5) + `"f:spec":{}}}],` +
	`"name":"o-0000001","namespace":"default","resourceVersion":"12345","uid":"00000000-0000-4000-8000-000000000001"},"spec":{"payload":[` +
	strings.Repeat(`{"name":"entry","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7"},`, 9) + `{}],"size":1},"status":{"create":{"message":"created"}}}`)

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(handled); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode decodes all of an object, or one part of it.
func BenchmarkDecode(b *testing.B) {
	body, err := Parse(handled)
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func(*Body){
		"all":      func(b *Body) { b.Map() },
		"metadata": func(b *Body) { b.Annotations() },
		"status":   func(b *Body) { b.Lookup("status") },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decode(body.Undecoded())
			}
		})
	}
}

func TestPartsAreDecodedLikeTheWholeObject(t *testing.T) {
	t.Parallel()
	body, err := Parse([]byte(`{"metadata":{"name":"n","labels":{"a":"b"}},"spec":{"n":1,"f":1.5,"l":[null]},"null":null,"status":"s"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"spec", "n"}, {"spec", "f"}, {"spec", "absent"}, {"absent"}, {"null"}, {"null", "x"}, {"status"}, {"status", "x"}, {"metadata", "labels", "a"}} {
		whole := body.Undecoded()
		whole.Map()
		want, wantOK := whole.Lookup(path...)
		if got, ok := body.Lookup(path...); ok != wantOK || got != want {
			t.Errorf("%v: got %v, %v, want %v, %v", path, got, ok, want, wantOK)
		}
	}
	if len(body.Map()) != 4 {
		t.Errorf("got %v after looking up its parts", body.Map())
	}
}
