package jsonvalue

import (
	"bytes"
	"testing"
)

func TestWalk(t *testing.T) {
	w := NewWalk([]byte(` {"a" : [1, {"b":"]\""}] ,"c":-1.5e3 } `))
	if w.Take('[') || !w.Take('{') {
		t.Error("the object is not next")
	}
	for _, want := range []string{`"a"`, `[1, {"b":"]\""}]`, `"c"`, `-1.5e3`} {
		if got := w.Value(); string(got) != want {
			t.Errorf("the value is %s, want %s", got, want)
		}
	}
	if got := w.Value(); got != nil {
		t.Errorf("a value %s at the end of the object", got)
	}
	if !w.Take('}') || w.Peek() != 0 || w.Value() != nil {
		t.Error("the text does not end after the object")
	}
}

func TestWalkThroughATornText(t *testing.T) {
	for _, text := range []string{"", " ", `{"a"`, `[1,`, `"a`, `"a\`, `}`} {
		if w := NewWalk([]byte(text)); w.Value() != nil {
			t.Errorf("%q has a value", text)
		}
	}
	if w := NewWalk([]byte("12")); string(w.Value()) != "12" {
		t.Error("a number at the end of the text is not a value")
	}
}

// BenchmarkStream measures how fast the end of a value is found.
func BenchmarkStream(b *testing.B) {
	value := bytes.Repeat([]byte(`{"name":"entry-0","value":"volume1 claim2","base":"{\"spec\":{\"size\":1}}"},`), 40)
	value = append(append([]byte("["), value...), "null]"...)
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if got, err := NewStream(bytes.NewReader(value), MaxObject).Value(); err != nil || len(got) != len(value) {
			b.Fatal(len(got), err)
		}
	}
}
