package kube

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
)

// Any page that a server sends results in objects, skipped objects or an error.
func FuzzPage(f *testing.F) {
	for _, s := range []string{
		page("9", "x", "a", "b"), `{"items":null,"metadata":{"resourceVersion":"1"}}`, `{"metadata":1,"items":[1]}`, `{"items":[{"metadata":{"name":"a"},"x":[}]}`,
		`{"items":[{"metadata":{"name":"a"}}{}]}`, `[]`, `{`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := (&Client{}).readPage(bytes.NewReader(text), pods, func(b *object.Body) error {
			if b.Map() == nil {
				t.Fatalf("%s is not decoded", b.Raw())
			}
			return nil
		}, func(e *object.UnreadableError) {
			if e.Name == "" {
				t.Fatal("skipped an object without a name")
			}
		})
		known(t, err)
	})
}

// Any watch that a server sends results in events or an error.
func FuzzWatch(f *testing.F) {
	for _, s := range []string{
		`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}` + "\n" + `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`,
		`{"object":{"metadata":{"name":"a"},"spec":[}},"type":"DELETED"}`, `{"type":"ERROR","object":{"code":410}}`, `{"type":"ERROR"}`, `{"type":1,"object":1}`, `{"type":`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w := &Watch{events: jsonvalue.NewStream(bytes.NewReader(text), jsonvalue.MaxObject), skip: func(*object.UnreadableError) {}, parse: object.Parse}
		for {
			e, err := w.next()
			if err != nil {
				known(t, malformed(err))
				return
			}
			if e.known() && e.Type != Error && e.Body == nil || e.Type == Error && e.Status == nil {
				t.Fatalf("incomplete event: %+v", e)
			}
		}
	})
}

// known fails the test for errors that blame neither the connection nor the server.
func known(t *testing.T, err error) {
	t.Helper()
	var bad *MalformedError
	if err != nil && !errors.As(err, &bad) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%T %v", err, err)
	}
}
