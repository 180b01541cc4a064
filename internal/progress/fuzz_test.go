package progress_test

import (
	"errors"
	"testing"
	"time"

	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// Every text decodes to a usable note, or to an empty one with a MalformedError.
func FuzzNote(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"key":"k","seen":{"spec":{}}}`, `{"v":2,"key":"k","essences":[{"spec":{"a":1}}],"saw":{"h":{"essence":0,"stopped":"2026-01-01"},"g":{"essence":0}},"todo":[{"handler":"h","patch":{"spec":{}}}]}`,
		`{"v":2,"saw":{"h":{"essence":-1}}}`, `{"v":3}`, `gz:H4sIAAAAAAAC/6quBQQAAP//Q7+mowIAAAA=`, `gz:`, `{"v":2,"essences":[null]}`, `{"v":2,"todo":[{}]}`,
	} {
		f.Add(s)
	}
	at := time.Unix(1, 0)
	records := map[string]storage.Record{"h": {Started: at, Stopped: at, Success: true, Purpose: "update"}}
	final := map[string]any{"spec": map[string]any{"a": int64(2)}}
	f.Fuzz(func(t *testing.T, message string) {
		n, err := progress.DecodeNote(storage.Record{Started: at, Purpose: "update", Message: &message}, records)
		var malformed *storage.MalformedError
		if err != nil && (!errors.As(err, &malformed) || !n.Empty()) {
			t.Fatal(err)
		}
		n.Verify(progress.BaseID(final), records)
		n.Continue("update")
		n.Earlier("h")
		n.Saw("g", final, at)
		n.End(final, nil, records, nil)
		if !n.Equal(n.Clone()) {
			t.Fatal("a clone differs")
		}
		if _, err := n.Encode(); err != nil && !errors.Is(err, progress.ErrNoteTooLarge) {
			t.Fatal(err)
		}
	})
}
