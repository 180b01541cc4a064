package object

import (
	"encoding/json"
	"errors"
	"testing"
)

// An object is either rejected, or all its parts can be used.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `null`, `{"metadata":{"name":"a","managedFields":[{}],"uid":"u"},"spec":{"n":1e999},"status":{}}`,
		`{"metadata":{"managedFields":[]}}`, `{"status":1,"metadata":1,"metadata":{"name":"b"},"status":[2]}`,
		` { "metadata" : { "uid" : "u" , "managedFields" : [ 1 ] , "deletionTimestamp":null } } `, `{"meta\u0064ata":{"n\u0061me":"x","managed\u0046ields":[1],"a":2}}`,
		`{"kind":"K","apiVersion":"v1","metadata":{"labels":{"a":1},"annotations":[],"finalizers":["a",1]}}`, `{"metadata":{"name":"a"},"spec":[[[[`,
		`{"metadata":{"managedFields":1,"managedFields":2,"name":"x"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Parse(text)
		if err != nil {
			var unreadable *UnreadableError
			if !errors.As(err, &unreadable) {
				t.Fatal(err)
			}
			_ = unreadable.Stub()
			return
		}
		if version, err := VersionOf(text); err != nil || version != b.ResourceVersion {
			t.Fatalf("VersionOf returns %q and %v, want %q", version, err, b.ResourceVersion)
		}
		for _, b := range []*Body{b, b.WithType("v1", "Kind"), b.At("7")} {
			if !json.Valid(b.Raw()) && json.Valid(text) {
				t.Fatalf("%s became %s", text, b.Raw())
			}
			b.Finalizers()
			b.Annotations()
			b.Labels()
			b.Lookup("status", "x")
			if b.Undecoded().Map() == nil {
				t.Fatalf("%s is not decoded", b.Raw())
			}
			if _, err := b.Fields(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// For a readable object, identify returns the same identity as Parse.
func FuzzIdentify(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"1"}}`))
	f.Add([]byte(`{"metadata":{"name":"a"},"spec":[[[[`))
	f.Add([]byte(`{"metadata":`))
	f.Fuzz(func(t *testing.T, text []byte) { identify(text) })
}
