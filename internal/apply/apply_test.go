package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

// server is an API server with one object, whose writes can fail.
type server struct {
	t        *testing.T
	object   map[string]any
	requests []string
	before   func(n int) error // called before the n-th write; its error refuses the write
	after    func(n int) error // called after the n-th write; its error loses the response
}

func (s *server) Get(context.Context, kube.Target) (*object.Body, error) {
	s.requests = append(s.requests, "get")
	if s.object == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "x")
	}
	return s.body(), nil
}

func (s *server) body() *object.Body {
	b, err := object.FromMap(jsonvalue.Clone(s.object).(map[string]any))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *server) Patch(_ context.Context, target kube.Target, how types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	n := 1
	for _, r := range s.requests {
		if r != "get" {
			n++
		}
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %s %s", how[len("application/"):len(how)-len("-patch+json")], target.Subresource, raw))
	if s.before != nil {
		if err := s.before(n); err != nil {
			return nil, err
		}
	}
	if err := s.apply(how, raw); err != nil {
		return nil, err
	}
	if s.after != nil {
		if err := s.after(n); err != nil {
			return nil, &kube.UnknownOutcomeError{Err: err}
		}
	}
	return s.body(), nil
}

func (s *server) apply(how types.PatchType, raw []byte) error {
	version := s.version()
	switch how {
	case types.MergePatchType:
		var fields map[string]any
		_ = json.Unmarshal(raw, &fields)
		metadata, _ := fields["metadata"].(map[string]any)
		if wanted, ok := metadata["resourceVersion"]; ok && wanted != version {
			return apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("the object has been modified"))
		}
		patch.Apply(s.object, fields)
	case types.JSONPatchType:
		p, err := jsonpatch.DecodePatch(raw)
		if err != nil {
			s.t.Fatal(err)
		}
		after, err := p.Apply(s.body().Raw())
		if err != nil {
			return apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
		}
		s.object = nil
		_ = json.Unmarshal(after, &s.object)
	}
	s.touch()
	return nil
}

func (s *server) version() string {
	return s.object["metadata"].(map[string]any)["resourceVersion"].(string)
}

// touch increments the version, as a write of another client does.
func (s *server) touch() {
	n, _ := strconv.Atoi(s.version())
	s.object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(n + 1)
}

func newServer(t *testing.T) *server {
	return &server{t: t, object: map[string]any{
		"metadata": map[string]any{"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
		"spec":     map[string]any{"size": "1Gi"},
	}}
}

func (s *server) applier() Applier {
	return Applier{API: s, Log: slog.New(slog.DiscardHandler), Resource: kind.Info{
		Plural: "claims", Version: "v1", Namespaced: true, Subresources: []string{"status"},
	}}
}

func changes() (asked, notes *patch.Patch) {
	asked, notes = &patch.Patch{}, &patch.Patch{}
	asked.Set("hello", "status", "fn")
	notes.Set("done", "metadata", "annotations", "record")
	return asked, notes
}

func (s *server) check(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.requests, want) {
		s.t.Errorf("requests:\ngot  %q\nwant %q", s.requests, want)
	}
}

const (
	status = `merge status {"metadata":{"resourceVersion":"1"},"status":{"fn":"hello"}}`
	record = `merge  {"metadata":{"annotations":{"record":"done"},"uid":"u"}}`
)

func TestResultsAreSentBeforeTheirRecords(t *testing.T) {
	s := newServer(t)
	asked, notes := changes()
	if _, err := s.applier().Apply(t.Context(), s.body(), asked, notes, Finalizer{}); err != nil {
		t.Fatal(err)
	}
	s.check(status, record)
}

func TestRecordsInTheStatusAreSentLast(t *testing.T) {
	s := newServer(t)
	asked, notes := changes()
	notes.Set(nil, "status", "progress")
	s.object["status"] = map[string]any{"progress": "x"}
	if _, err := s.applier().Apply(t.Context(), s.body(), asked, notes, Finalizer{}); err != nil {
		t.Fatal(err)
	}
	s.check(status, record, `merge status {"metadata":{"resourceVersion":"3"},"status":{"progress":null}}`)
}

func TestAWriteThatChangesNothingIsNotSent(t *testing.T) {
	s := newServer(t)
	s.object["status"] = map[string]any{"fn": "hello"}
	asked, _ := changes()
	asked.Set(nil, "metadata", "labels", "absent")
	a := s.applier()
	a.Fresh = true
	after, err := a.Apply(t.Context(), s.body(), asked, &patch.Patch{}, Finalizer{})
	if err != nil || after.ResourceVersion != "1" {
		t.Errorf("got %v, version %s", err, after.ResourceVersion)
	}
	s.check()
}

// silent returns no version from PatchBriefly.
type silent struct{ *server }

func (s silent) PatchBriefly(ctx context.Context, t kube.Target, how types.PatchType, raw []byte, p ...kube.Param) (string, error) {
	_, err := s.Patch(ctx, t, how, raw, p...)
	return "", err
}

func TestAMissingVersionInTheResponseIsRead(t *testing.T) {
	s := newServer(t)
	asked, notes := changes()
	a := s.applier()
	a.API, a.Brief = silent{s}, true
	after, err := a.Apply(t.Context(), s.body(), asked, notes, Finalizer{})
	if err != nil || after.ResourceVersion != "3" || after.Stale() {
		t.Errorf("got %v, version %q, stale %v", err, after.ResourceVersion, after.Stale())
	}
	s.check(status, record, "get")
}

func TestALostResponseIsConfirmedByReading(t *testing.T) {
	s := newServer(t)
	s.after = func(n int) error { return map[bool]error{true: errors.New("broken")}[n == 1] }
	asked, notes := changes()
	if _, err := s.applier().Apply(t.Context(), s.body(), asked, notes, Finalizer{}); err != nil {
		t.Fatal(err)
	}
	s.check(status, "get", record)
}

func TestALostWriteIsSentAgain(t *testing.T) {
	s := newServer(t)
	s.before = func(n int) error {
		if n == 1 {
			return &kube.UnknownOutcomeError{Err: errors.New("broken")}
		}
		return nil
	}
	asked, notes := changes()
	if _, err := s.applier().Apply(t.Context(), s.body(), asked, notes, Finalizer{}); err != nil {
		t.Fatal(err)
	}
	s.check(status, "get", status, record)
}

func TestAFinalizerIsNotAddedTwiceAfterALostResponse(t *testing.T) {
	s := newServer(t)
	s.after = func(int) error { return errors.New("broken") }
	after, err := s.applier().Apply(t.Context(), s.body(), &patch.Patch{}, &patch.Patch{}, Finalizer{Name: "f", Add: true})
	if err != nil || !slices.Equal(after.Finalizers(), []string{"f"}) {
		t.Errorf("got %v, finalizers %q", err, after.Finalizers())
	}
	s.check(`json  [{"op":"test","path":"/metadata/resourceVersion","value":"1"},{"op":"add","path":"/metadata/finalizers","value":["f"]}]`, "get")
}

func TestAFinalizerIsAddedToTheNewestObject(t *testing.T) {
	s := newServer(t)
	body := s.body()
	s.object["metadata"].(map[string]any)["finalizers"] = []any{"other"}
	s.touch()
	after, err := s.applier().Apply(t.Context(), body, &patch.Patch{}, &patch.Patch{}, Finalizer{Name: "f", Add: true})
	if err != nil || !slices.Equal(after.Finalizers(), []string{"other", "f"}) {
		t.Errorf("got %v, finalizers %q", err, after.Finalizers())
	}
}

func TestNoFinalizerIsAddedToAnObjectThatIsBeingDeleted(t *testing.T) {
	s := newServer(t)
	body := s.body()
	s.object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	s.touch()
	after, err := s.applier().Apply(t.Context(), body, &patch.Patch{}, &patch.Patch{}, Finalizer{Name: "f", Add: true})
	if err != nil || !after.Deleting || len(after.Finalizers()) > 0 {
		t.Errorf("got %v, %+v", err, after.Identity)
	}
}

func TestAFinalizerIsRemovedInOneRequestWithTheRecord(t *testing.T) {
	s := newServer(t)
	s.object["metadata"].(map[string]any)["finalizers"] = []any{"f"}
	s.object["metadata"].(map[string]any)["annotations"] = map[string]any{"record": "half"}
	notes := &patch.Patch{}
	notes.Set(nil, "metadata", "annotations", "record")
	if _, err := s.applier().Apply(t.Context(), s.body(), &patch.Patch{}, notes, Finalizer{Name: "f", Remove: true}); err != nil {
		t.Fatal(err)
	}
	s.check(`json  [{"op":"test","path":"/metadata/resourceVersion","value":"1"},{"op":"remove","path":"/metadata/annotations"},{"op":"remove","path":"/metadata/finalizers"}]`)
}

func TestEditsRunAgainOnANewerObject(t *testing.T) {
	s := newServer(t)
	body := s.body()
	s.object["spec"].(map[string]any)["size"] = "5Gi"
	s.touch()
	asked := &patch.Patch{}
	var seen []any
	asked.Edit(func(fields map[string]any) {
		spec := fields["spec"].(map[string]any)
		seen = append(seen, spec["size"])
		spec["was"] = spec["size"]
	})
	if _, err := s.applier().Apply(t.Context(), body, asked, &patch.Patch{}, Finalizer{}); err != nil {
		t.Fatal(err)
	}
	if s.object["spec"].(map[string]any)["was"] != "5Gi" || len(seen) != 2 {
		t.Errorf("the object is %v; the edit saw %v", s.object, seen)
	}
}

func TestAMissingObjectIsReportedAsGone(t *testing.T) {
	s := newServer(t)
	s.before = func(int) error { return apierrors.NewNotFound(schema.GroupResource{}, "x") }
	asked, notes := changes()
	if _, err := s.applier().Apply(t.Context(), s.body(), asked, notes, Finalizer{}); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestANewObjectWithTheSameNameIsNotPatched(t *testing.T) {
	s := newServer(t)
	body := s.body()
	s.before = func(int) error {
		s.object["metadata"].(map[string]any)["uid"] = "another"
		return &kube.UnknownOutcomeError{Err: errors.New("broken")}
	}
	asked, notes := changes()
	if _, err := s.applier().Apply(t.Context(), body, asked, notes, Finalizer{}); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestOtherRefusalsAreErrors(t *testing.T) {
	s := newServer(t)
	s.before = func(int) error { return apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")) }
	asked, notes := changes()
	if _, err := s.applier().Apply(t.Context(), s.body(), asked, notes, Finalizer{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestARefusalAfterAConflictReportsThatTheObjectChanged(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
	for name, f := range map[string]Finalizer{"without a finalizer": {}, "with a finalizer": {Name: "f", Add: true}} {
		for outcome, touched := range map[string]bool{"changed": true, "unchanged": false} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				s := newServer(t)
				body := s.body()
				asked := &patch.Patch{}
				asked.Edit(func(fields map[string]any) { fields["spec"] = map[string]any{"size": "none"} })
				s.before = func(n int) error {
					if touched && n == 1 {
						s.touch()
						return nil // the patch is bound to the older version
					}
					return refusal
				}
				after, err := s.applier().Apply(t.Context(), body, asked, &patch.Patch{}, f)
				if !Refused(err) || Changed(err) != touched || (after.ResourceVersion != body.ResourceVersion) != touched {
					t.Errorf("refused %v, changed %v, version %s: %v", Refused(err), Changed(err), after.ResourceVersion, err)
				}
			})
		}
	}
}
