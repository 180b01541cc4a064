package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

func TestContentThatIsNotKeptIsRead(t *testing.T) {
	server := &marked{version: 1}
	store := childwatch.NewStore("me", func() uint64 { return 1 })
	objects := &apiclient.Objects{API: server, Known: func() []kind.Info { return []kind.Info{widgets} }}
	runner := &reconcile.Runner{Objects: objects, Store: store, Name: "me"}
	child, err := store.Read(widgets, server.body())
	if err != nil {
		t.Fatal(err)
	}
	server.padding = 100 << 10
	huge, err := store.Read(widgets, server.body())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		child   *childwatch.Child
		version int
		padding int
		want    string // the version, or the beginning of the error
	}{
		"kept":                 {child, 2, 0, "1"},
		"not kept":             {child.WithoutContent(), 2, 0, "2"},
		"deleted":              {child.WithoutContent(), 0, 0, "read Widget w: it was deleted, or is another object now"},
		"kept and deleted":     {child, 0, 0, "1"},
		"too large to be kept": {huge, 2, 100 << 10, "2"},
		"large, and deleted":   {huge, 0, 100 << 10, "read Widget w: it was deleted, or is another object now"},
	} {
		server.version, server.padding = test.version, test.padding
		body, err := runner.Content(t.Context(), "default", test.child)()
		got := fmt.Sprint(err)
		if err == nil {
			got = body.ResourceVersion
			if text, _ := body.Lookup("data"); text != strings.Repeat("x", test.padding) {
				t.Errorf("%s: the content is not complete", name)
			}
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
