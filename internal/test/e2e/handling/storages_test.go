package handling_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/storage"
)

// memory is a storage as users may write it: it keeps everything by itself.
type memory struct {
	mu      sync.Mutex
	records map[string]map[string]storage.Record
	bases   map[string]string
}

func newMemory() *memory {
	return &memory{records: map[string]map[string]storage.Record{}, bases: map[string]string{}}
}

// memoryProgress and memoryBase are two views at it.
type (
	memoryProgress struct{ *memory }
	memoryBase     struct{ *memory }
)

func (m memoryProgress) Load(_ context.Context, o storage.Object, ids []string) (map[string]storage.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]storage.Record{}
	for _, id := range ids {
		if r, ok := m.records[o.Identity().UID][id]; ok {
			found[id] = r
		}
	}
	return found, nil
}

func (m memoryProgress) Save(_ context.Context, o storage.Object, _ storage.Patch, changed map[string]storage.Record, purge []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(m.records[o.Identity().UID])
	if all == nil {
		all = map[string]storage.Record{}
	}
	maps.Copy(all, changed)
	for _, id := range purge {
		delete(all, id)
	}
	m.records[o.Identity().UID] = all
	return nil
}

func (memoryProgress) Clean(map[string]any) {}

func (m memoryBase) Load(_ context.Context, o storage.Object) (map[string]any, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.bases[o.Identity().UID]
	if !ok {
		return nil, false, nil
	}
	return storage.DecodeEssence(text)
}

func (m memoryBase) Save(_ context.Context, o storage.Object, _ storage.Patch, essence map[string]any) error {
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bases[o.Identity().UID] = text
	return nil
}

func (memoryBase) Clean(map[string]any) {}

// storedLife declares two handlers for creation, of which the second fails as
// often as told, one for updates and one for deletion.
func storedLife(resource string, d *diary, failures int, progress storage.Progress, base storage.Base) *gopf.Operator {
	op := newOperator()
	op.Settings.Persistence.Progress, op.Settings.Persistence.Base = progress, base
	x := gopf.For[*Example](op, resource)
	x.OnCreate("first", d.handler("first"))
	x.OnCreate("second", func(ctx context.Context, c *gopf.Change[*Example]) error {
		if c.Retry < failures {
			return gopf.RetryAfter(100*time.Millisecond, errors.New("not yet"))
		}
		return d.handler("second")(ctx, c)
	})
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("update %s->%s", c.Old.Spec.Field, c.Object.Spec.Field)
		return nil
	})
	x.OnDelete("delete_fn", d.handler("delete"))
	return op
}

const ownPrefix = "operator.example.com"

func statusText(obj *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(obj.Object, append([]string{"status"}, path...)...)
	return text
}

func TestAnObjectLivesWithAnyStorage(t *testing.T) {
	t.Parallel()
	inAnnotation := func(key string) func(*unstructured.Unstructured) string {
		return func(obj *unstructured.Unstructured) string { return obj.GetAnnotations()[key] }
	}
	own := newMemory()
	for _, test := range []struct {
		name     string
		progress storage.Progress
		base     storage.Base
		stored   func(*unstructured.Unstructured) string // the last-handled configuration
		traces   int                                     // annotations at the end
	}{
		{"in the status", storage.NewStatusProgress("kopf"), storage.NewStatusBase("kopf"), func(obj *unstructured.Unstructured) string {
			return statusText(obj, "kopf", "last-handled-configuration") + "\n"
		}, 0},
		{"under a prefix of its own", storage.NewAnnotationProgress(ownPrefix), storage.NewAnnotationBase(ownPrefix),
			inAnnotation(ownPrefix + "/last-handled-configuration"), 3},
		{"progress in the status, base in an annotation", storage.NewStatusProgress("kopf"), storage.DefaultBase(), inAnnotation(lastHandled), 2},
		{"in several places", storage.MultiProgress(storage.DefaultProgress(), storage.NewStatusProgress("kopf")),
			storage.MultiBase(storage.DefaultBase(), storage.NewAnnotationBase(ownPrefix)), inAnnotation(ownPrefix + "/last-handled-configuration"), 5},
		{"elsewhere", memoryProgress{own}, memoryBase{own}, func(obj *unstructured.Unstructured) string {
			own.mu.Lock()
			defer own.mu.Unlock()
			return own.bases[string(obj.GetUID())] + "\n"
		}, 0},
	} {
		for _, resource := range []string{examples, plains} {
			t.Run(test.name+", "+plural(resource), func(t *testing.T) {
				t.Parallel()
				s, d := newSpace(t), &diary{}
				o := s.start(storedLife(resource, d, 1, test.progress, test.base), nil).following(plural(resource))
				settled := func(field string) {
					t.Helper()
					s.waitFor(resource, "x", func(obj *unstructured.Unstructured) error {
						if got := test.stored(obj); got != kopfBase(field) {
							return fmt.Errorf("last handled: %q", got)
						}
						if got := obj.GetAnnotations(); len(got) != test.traces || test.traces > 2 && got[ownPrefix+"/kopf-managed"] != "yes" {
							return fmt.Errorf("annotations: %q", got)
						}
						if left := statusProgress(obj); len(left) > 0 {
							return fmt.Errorf("records are left in the status: %v", left)
						}
						return nil
					})
				}
				s.Create(resource, "x", spec("a"))
				settled("a")
				o.Stop()
				o = s.start(storedLife(resource, d, 1, test.progress, test.base), nil).following(plural(resource))
				s.Patch(resource, "x", spec("b"))
				settled("b")
				o.staysQuiet(t, d)
				s.Delete(resource, "x")
				s.waitGone(resource, "x")
				d.Check(t, "first create a", "second create a", "update a->b", "delete delete b")
			})
		}
	}
}

func statusProgress(obj *unstructured.Unstructured) fields {
	found, _, _ := unstructured.NestedMap(obj.Object, "status", "kopf", "progress")
	return found
}

func TestAnOperatorCanMoveFromOneStorageToAnotherAtAnyMoment(t *testing.T) {
	t.Parallel()
	annotations := func() (storage.Progress, storage.Base) { return storage.DefaultProgress(), storage.DefaultBase() }
	status := func() (storage.Progress, storage.Base) {
		return storage.NewStatusProgress("kopf"), storage.NewStatusBase("kopf")
	}
	for _, test := range []struct {
		name     string
		from, to func() (storage.Progress, storage.Base)
	}{
		{"from annotations to the status", annotations, status},
		{"from the status to annotations", status, annotations},
		{"from Kopf's annotations to others", annotations, func() (storage.Progress, storage.Base) {
			return storage.NewAnnotationProgress(ownPrefix), storage.NewAnnotationBase(ownPrefix)
		}},
		{"from annotations to elsewhere", annotations, func() (storage.Progress, storage.Base) {
			own := newMemory()
			return memoryProgress{own}, memoryBase{own}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			oldProgress, oldBase := test.from()
			newProgress, newBase := test.to()
			o := s.start(storedLife(examples, d, 1000, oldProgress, oldBase), nil) // it never gets further
			s.Create(examples, "x", spec("a"))
			d.WaitFor(t, "first create a")
			o.Stop()
			moving := storedLife(examples, d, 0,
				storage.MultiProgress(newProgress, storage.RetiredProgress(oldProgress)), storage.MultiBase(newBase, oldBase))
			o = s.start(moving, nil)
			d.WaitFor(t, "second create a")
			s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
				if left := statusProgress(obj); len(left) > 0 {
					return fmt.Errorf("records are left in the status: %v", left)
				}
				for _, id := range []string{"first", "second", "gopf.handling"} {
					for _, prefix := range []string{"kopf.zalando.org/", ownPrefix + "/"} {
						if obj.GetAnnotations()[prefix+id] != "" {
							return fmt.Errorf("records are left: %q", obj.GetAnnotations())
						}
					}
				}
				return nil
			})
			o.Stop()
			o = s.start(storedLife(examples, d, 0, newProgress, newBase), nil).following("examples")
			o.staysQuiet(t, d)
			s.Patch(examples, "x", spec("b"))
			d.WaitFor(t, "update a->b")
			s.Delete(examples, "x")
			s.waitGone(examples, "x")
			d.Check(t, "first create a", "second create a", "update a->b", "delete delete b")
		})
	}
}
