package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"testing/iotest"
)

var seeds = []string{
	``, `{}`, `[]`, `null`, `1e999`, `-0`, `"\ud83d\ude00"`, `{"a":[1,{"b":null}],"a":2}`, `[1 2]`, `{"a":"\"}\\"}`, ` [ {"x" : true } , "y" ] 3`,
	`[[[[[[[[]]]]]]]]`, `{"metadata":{"name":"a"}}`, "\xff", `"\xff"`, `{"\u0061":9223372036854775808}`, `{"a":1.0}`,
}

// Valid JSON must decode as with the standard library, and must encode to the same value.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Object(text)
		if err != nil {
			return
		}
		var want map[string]any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("decoded as %v, but %v", got, err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Object(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		// The texts are compared, because 1.0 is encoded as 1, which is another type in Go.
		if same, err := json.Marshal(second); err != nil || !bytes.Equal(again, same) {
			t.Fatalf("%s became %s, error %v", again, same, err)
		}
		if len(want) != len(got) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// A stream must split a text in the same way however it arrives, and valid JSON into
// valid values.
func FuzzStream(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, wantErr := cut(bytes.NewReader(text), 64)
		got, err := cut(iotest.OneByteReader(bytes.NewReader(text)), 64)
		if len(got) != len(want) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q, error %v; byte by byte %q, error %v", want, wantErr, got, err)
		}
		// A name that is longer than the limit ends the stream.
		if _, long := errors.AsType[*TooLongError](wantErr); json.Valid(text) && wantErr != nil && !long {
			t.Fatalf("valid JSON: %v", wantErr)
		}
	})
}

// A walk through valid JSON must find the same values as the standard library. A walk through
// anything else must end.
func FuzzWalk(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w := NewWalk(text)
		walked := rebuild(&w)
		if !json.Valid(text) {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Fatal(err)
		}
		if string(walked) != want.String() {
			t.Fatalf("walked through %s, want %s", walked, &want)
		}
	})
}

// rebuild walks into all objects and arrays of the next value, and returns it without white
// space.
func rebuild(w *Walk) (text []byte) {
	switch opening := w.Peek(); opening {
	case '{', '[':
		closing := opening + 2
		w.Take(opening)
		for text = append(text, opening); w.Peek() != closing && w.Peek() != 0; {
			at := w.pos
			if len(text) > 1 {
				text = append(text, ',')
			}
			if opening == '{' {
				text = append(append(text, w.Value()...), ':')
			}
			if text = append(text, rebuild(w)...); w.pos == at { // an invalid text
				break
			}
		}
		w.Take(closing)
		return append(text, closing)
	default:
		return append([]byte(nil), w.Value()...)
	}
}

// A text that passes Check must be within the limits when it is decoded.
func FuzzCheck(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), uint16(1), uint16(1))
	}
	f.Add([]byte(`[`), uint16(2000), uint16(1))
	f.Add([]byte(`{"a":`), uint16(500), uint16(3))
	f.Fuzz(func(t *testing.T, text []byte, times, more uint16) {
		text = bytes.Repeat(text, min(int(times), 1<<20/(len(text)+1)))
		text = append(text, bytes.Repeat([]byte("]"), int(more))...)
		err := Check(text, MaxStored)
		v, decodeErr := Decode(text)
		if err != nil || decodeErr != nil {
			return
		}
		if depth, values := measure(v); depth > MaxDepth || values > MaxValues {
			t.Fatalf("%d levels, %d values", depth, values)
		}
	})
}

func measure(v any) (depth, values int) {
	inside := func(v any) {
		d, n := measure(v)
		depth, values = max(depth, d), values+n
	}
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			inside(item)
		}
	case []any:
		for _, item := range v {
			inside(item)
		}
	default:
		return 0, 1
	}
	return depth + 1, values + 1
}
