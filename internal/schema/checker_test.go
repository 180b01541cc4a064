package schema

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// api is an API server that serves documents by path.
type api struct {
	mu        sync.Mutex
	documents map[string]string
	err       error // nil means that unknown paths are not found
	requests  []string
}

func (a *api) Document(_ context.Context, path string, read func(io.Reader) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, path)
	if text, ok := a.documents[path]; ok {
		return read(strings.NewReader(text))
	}
	if a.err != nil {
		return a.err
	}
	return apierrors.NewNotFound(schema.GroupResource{}, path)
}

func (a *api) serve(documents map[string]string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.documents, a.err = documents, err
}

func complete() map[string]string {
	return map[string]string{
		"/openapi/v3":                     `{"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"}, "apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=2"}}}`,
		"/openapi/v3/apis/example.com/v1": published,
	}
}

// checked runs a checker for an hour of virtual time and returns its warnings.
func checked(t *testing.T, a *api, check func(*Checker)) []string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker(a, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go check(c)
		c.Run(ctx)
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" })
}

func path(text, doubt string) Path {
	return Path{Keys: jsonvalue.SplitPath(text), Handlers: []string{"a", "b"}, Doubt: doubt}
}

func TestMissingPathsAreReportedOnce(t *testing.T) {
	a := &api{documents: complete()}
	got := checked(t, a, func(c *Checker) {
		for range 3 {
			c.Check(databases, []Path{
				path("spec.hosst", "a doubt"), path("spec.host", "a doubt"), path("spec.unrelated", ""), path("spec.users.0", ""),
				path("spec.any.x", ""), path("spec.raw.x", "It is odd."), path("metadata.x", "It is odd, too."),
			})
			time.Sleep(time.Minute)
		}
	})
	want := []string{
		`msg="The field spec.hosst of databases.v1.example.com does not exist in the schema of the cluster; did you mean spec.host?" handlers="[a b]"`,
		`msg="The field spec.unrelated of databases.v1.example.com does not exist in the schema of the cluster." handlers="[a b]"`,
		`msg="The field spec.users.0 of databases.v1.example.com does not exist in the schema of the cluster: spec.users is a list." handlers="[a b]"`,
		`msg="Doubtful declaration: It is odd." handlers="[a b]"`,
		`msg="Doubtful declaration: It is odd, too." handlers="[a b]"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if want := []string{"/openapi/v3", "/openapi/v3/apis/example.com/v1"}; !slices.Equal(a.requests, want) {
		t.Errorf("requests: %q, want %q", a.requests, want)
	}
}

func TestNothingIsRequestedWithoutPaths(t *testing.T) {
	a := &api{documents: complete()}
	got := checked(t, a, func(c *Checker) {
		c.Check(databases, nil)
		c.Check(kind.Info{Version: "v1", Plural: "pods", Kind: "Pod"}, []Path{path("metadata.labels.x", "")})
	})
	if len(got) > 0 || len(a.requests) > 0 {
		t.Errorf("got %q after %q", got, a.requests)
	}
}

func TestSchemasThatAreNotServedAreSkipped(t *testing.T) {
	for name, err := range map[string]error{
		"not found": nil, "forbidden": apierrors.NewForbidden(schema.GroupResource{}, "/openapi/v3", errors.New("no")),
	} {
		a := &api{err: err}
		got := checked(t, a, func(c *Checker) { c.Check(databases, []Path{path("spec.hosst", ""), path("spec.x", "A doubt.")}) })
		if want := []string{`msg="Doubtful declaration: A doubt." handlers="[a b]"`}; !slices.Equal(got, want) || len(a.requests) != 1 {
			t.Errorf("%s: got %q after %q", name, got, a.requests)
		}
	}
}

func TestSchemasThatAreNotPublishedYetAreAwaited(t *testing.T) {
	other := strings.ReplaceAll(published, `"kind": "Database"}]`, `"kind": "Table"}]`)
	for name, first := range map[string]map[string]string{
		"the group is new":       {"/openapi/v3": `{"paths": {}}`},
		"the kind is new":        {"/openapi/v3": complete()["/openapi/v3"], "/openapi/v3/apis/example.com/v1": other},
		"the document is broken": {"/openapi/v3": complete()["/openapi/v3"], "/openapi/v3/apis/example.com/v1": `{"components": {`},
		"the server fails":       nil,
	} {
		a := &api{}
		a.serve(first, errors.New("unavailable"))
		got := checked(t, a, func(c *Checker) {
			c.Check(databases, []Path{path("spec.hosst", "A doubt.")})
			time.Sleep(30 * time.Second) // two attempts have failed, and a third follows
			a.serve(complete(), nil)
		})
		if len(got) != 1 || !strings.Contains(got[0], "did you mean spec.host?") {
			t.Errorf("%s: got %q after %q", name, got, a.requests)
		}
	}
}

func TestDocumentsThatAreTooLargeAreReadOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"components": {"schemas": {"x": {}`)
	for i := range 5 {
		text.WriteString(`, "` + strings.Repeat("y", i+1) + `": "` + strings.Repeat("x", usual().schemas/4) + `"`)
	}
	documents := complete()
	documents["/openapi/v3/apis/example.com/v1"] = text.String() + "}}}"
	a := &api{documents: documents}
	got := checked(t, a, func(c *Checker) { c.Check(databases, []Path{path("spec.hosst", "A doubt.")}) })
	if len(got) != 1 || !strings.Contains(got[0], "A doubt.") || len(a.requests) != 2 {
		t.Errorf("got %q after %q", got, a.requests)
	}
}

func TestAttemptsToReadSchemasEnd(t *testing.T) {
	a := &api{err: errors.New("unavailable")}
	got := checked(t, a, func(c *Checker) { c.Check(databases, []Path{path("spec.hosst", "A doubt.")}) })
	if len(got) != 1 || !strings.Contains(got[0], "A doubt.") || len(a.requests) != 3 {
		t.Errorf("got %q after %q", got, a.requests)
	}
}
