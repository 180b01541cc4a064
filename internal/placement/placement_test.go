package placement

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/schema"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// schemas serves the OpenAPI documents of things.v1.example.com. A nil function means
// that the API server shows no schemas.
type schemas func() (status string, published bool)

func (s schemas) Document(_ context.Context, path string, read func(io.Reader) error) error {
	if s == nil {
		return apierrors.NewForbidden(kinds.GroupResource{}, path, errors.New("no permission"))
	}
	status, published := s()
	text := `{"paths": {}}`
	switch {
	case !published:
	case path == "/openapi/v3":
		text = `{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=1"}}}`
	default:
		text = fmt.Sprintf(`{"components": {"schemas": {"Thing": {"type": "object", "properties": {"status": %s},
			"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]}}}}`, status)
	}
	return read(strings.NewReader(text))
}

func always(status string) schemas { return func() (string, bool) { return status, true } }

// after publishes the schema after the time.
func after(d time.Duration, status string) schemas {
	began := time.Now()
	return func() (string, bool) { return status, time.Since(began) >= d }
}

const (
	open   = `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`
	closed = `{"type": "object"}`
)

var (
	verbs  = []string{"list", "watch", "patch"}
	things = kind.Info{Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Preferred: true, Verbs: verbs, Subresources: []string{"status"}}
	plain  = kind.Info{Group: "example.com", Version: "v1", Plural: "plains", Kind: "Plain", Namespaced: true, Preferred: true, Verbs: verbs}
	pods   = kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true, Preferred: true, Verbs: verbs, Subresources: []string{"status"}}
)

func places(api schema.Source, log io.Writer) *Places {
	state := storage.NewStatusState("op", nil, storage.DefaultProgress(), storage.DefaultBase())
	return &Places{state: state, keeper: &schema.Keeper{API: api, Key: "op"}, log: slog.New(slog.NewTextHandler(log, nil))}
}

// handlerOf returns a change handler of a resource.
func handlerOf(t *testing.T, info kind.Info) *handler.Handler {
	t.Helper()
	s, err := kind.Parse(info.Plural)
	if err != nil {
		t.Fatal(err)
	}
	return &handler.Handler{ID: "of-" + info.Plural, Family: handler.Changes, Of: s}
}

func TestKindsKeepTheirStateInTheStatusIfTheirSchemaDoes(t *testing.T) {
	for name, test := range map[string]struct {
		info    kind.Info
		schemas func() schemas
		family  handler.Family
		want    bool
		log     string // a part of the only log line; "" means no line
	}{
		"kept":                 {things, func() schemas { return always(open) }, handler.Changes, true, ""},
		"pruned":               {things, func() schemas { return always(closed) }, handler.Changes, false, "the schema of the resource does not keep it"},
		"published late":       {things, func() schemas { return after(3*time.Second, open) }, handler.Changes, true, ""},
		"not published":        {things, func() schemas { return after(time.Hour, open) }, handler.Changes, false, "does not show the schema"},
		"no schemas":           {things, func() schemas { return nil }, handler.Changes, false, "does not show the schema"},
		"no status":            {plain, func() schemas { return always(open) }, handler.Changes, false, "the resource has no status subresource"},
		"built in":             {pods, func() schemas { return always(open) }, handler.Changes, false, ""},
		"only children":        {things, func() schemas { return always(open) }, handler.Reconciles, true, ""},
		"no changes":           {things, func() schemas { return always(closed) }, handler.Events, false, ""},
		"no changes, kept too": {things, func() schemas { return always(open) }, handler.Events, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				p := places(test.schemas(), &log)
				h := handlerOf(t, test.info)
				h.Family = test.family
				for range 2 { // the second time, nothing new is logged
					if got := p.Find(t.Context(), handler.Set{h}, []kind.Info{test.info})[test.info.GVR()]; got != test.want {
						t.Errorf("got %t, want %t", got, test.want)
					}
				}
				lines := strings.Count(log.String(), "\n")
				if test.log == "" && lines > 0 || test.log != "" && (lines != 1 || !strings.Contains(log.String(), test.log)) {
					t.Errorf("got the log %q, want the line %q once", log.String(), test.log)
				}
			})
		})
	}
}

// An object that is written in another version has only what the schema of that version
// keeps. A client that may not write the status could remove the state like that, and then
// forge it in annotations.
func TestAnotherVersionThatDoesNotKeepTheStateKeepsItOutOfTheStatus(t *testing.T) {
	beta, bare := things, things
	beta.Version, beta.Preferred = "v2beta1", false
	bare.Version, bare.Preferred, bare.Subresources = "v2", false, nil
	for name, test := range map[string]struct {
		other  kind.Info
		status string // in the schema of the other version
		want   bool
		log    string // a part of the only log line; "" means no line
	}{
		"kept":      {beta, open, true, ""},
		"pruned":    {beta, closed, false, "the schema of its other version v2beta1 does not keep it"},
		"no status": {bare, open, false, "its other version v2 has no status subresource"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p := places(twoVersions{test.other.Version, test.status}, &log)
			if got := p.Find(t.Context(), handler.Set{handlerOf(t, things)}, []kind.Info{things, test.other})[things.GVR()]; got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
			if test.log == "" && log.Len() > 0 || !strings.Contains(log.String(), test.log) {
				t.Errorf("got the log %q, want the line %q", log.String(), test.log)
			}
		})
	}
}

// twoVersions serves the OpenAPI documents of things in v1, which keep everything, and in
// another version.
type twoVersions struct{ other, status string }

func (s twoVersions) Document(_ context.Context, path string, read func(io.Reader) error) error {
	if path == "/openapi/v3" {
		return read(strings.NewReader(fmt.Sprintf(`{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/1?hash=1"}, "apis/example.com/%s": {"serverRelativeURL": "/2?hash=1"}}}`, s.other)))
	}
	version, status := "v1", open
	if strings.HasSuffix(path, "/"+s.other) {
		version, status = s.other, s.status
	}
	return read(strings.NewReader(fmt.Sprintf(`{"components": {"schemas": {"Thing": {"type": "object", "properties": {"status": %s},
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": %q, "kind": "Thing"}]}}}}`, status, version)))
}

func TestKindsStayInTheirPlaceUntilAnotherIsFound(t *testing.T) {
	p := places(nil, io.Discard)
	p.Update(map[kinds.GroupVersionResource]bool{things.GVR(): true, plain.GVR(): false})
	p.Update(map[kinds.GroupVersionResource]bool{plain.GVR(): true})
	for _, info := range []kind.Info{things, plain} {
		if !p.Fits(info, true) || p.Fits(info, false) {
			t.Errorf("%s: the state must be in the status", info)
		}
	}
	if p.Fits(pods, true) || !p.Fits(pods, false) {
		t.Errorf("%s: the state must be in annotations", pods)
	}
}

func TestStoragesFollowThePlace(t *testing.T) {
	p := places(nil, io.Discard)
	p.Update(map[kinds.GroupVersionResource]bool{things.GVR(): true, pods.GVR(): true})
	for _, test := range []struct {
		info   kind.Info
		status bool // the progress is in the status
		state  bool // state in the status is read
	}{{things, true, true}, {plain, false, true}, {pods, false, false}} {
		c := p.Config(process.Config{Finalizer: "kept"}, test.info)
		_, reads := c.Progress.(interface{ State() *storage.StatusState })
		if got := isInStatus(c.Progress); got != test.status || reads != test.state || c.Finalizer != "kept" {
			t.Errorf("%s: in the status %t, reads it %t, finalizer %q; want %t, %t and the finalizer as before", test.info, got, reads, c.Finalizer, test.status, test.state)
		}
	}
}

func TestOperatorsWithStateInAnnotationsHaveNoPlaces(t *testing.T) {
	p := New(storage.DefaultProgress(), nil, nil)
	p.Update(p.Find(t.Context(), handler.Set{handlerOf(t, things)}, []kind.Info{things}))
	before := process.Config{Progress: storage.DefaultProgress(), Finalizer: "kept"}
	after := p.Config(before, things)
	if p != nil || !p.Fits(things, true) || !p.Fits(things, false) || !reflect.DeepEqual(after, before) {
		t.Errorf("got %v, want nil that changes nothing", p)
	}
}

func TestMoveNeedsStateInTheStatus(t *testing.T) {
	state := storage.NewStatusState("op", nil, storage.DefaultProgress(), storage.DefaultBase())
	reading, _ := state.Storages(false)
	for name, m := range map[string]Move{
		"annotations only":     {Process: process.Config{Progress: storage.DefaultProgress()}},
		"reads status only":    {Process: process.Config{Progress: reading}, ToStatus: true},
		"no storage of status": {Process: process.Config{Progress: storage.DefaultProgress()}, ToStatus: true},
	} {
		if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "keeps no state in the status") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBuiltInKindsHaveGroupsWithoutDots(t *testing.T) {
	var got []string
	for _, group := range []string{"", "apps", "batch", "example.com", "apiextensions.k8s.io"} {
		if builtIn(kind.Info{Group: group}) {
			got = append(got, group)
		}
	}
	if want := []string{"", "apps", "batch"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConfigurationsKnowWhatTheSchemaKeeps(t *testing.T) {
	p := places(always(`{"type": "object", "properties": {"phase": {"type": "string"}, "op": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`), io.Discard)
	keeps := p.Config(process.Config{}, things).KeepsStatus
	phase, other := map[string]any{"phase": "Ready"}, map[string]any{"other": "x"}
	if keeps(phase) {
		t.Error("a field is kept before the schema is known")
	}
	p.Update(p.Find(t.Context(), handler.Set{handlerOf(t, things)}, []kind.Info{things}))
	if !keeps(phase) || keeps(other) {
		t.Errorf("phase: %t, want true; other: %t, want false", keeps(phase), keeps(other))
	}
}
