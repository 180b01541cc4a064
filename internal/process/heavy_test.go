package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// slowAPI takes a second for each write, and counts the concurrent ones by namespace.
type slowAPI struct {
	body *object.Body

	mu   sync.Mutex
	now  map[string]int
	most map[string]int
}

func (a *slowAPI) Get(context.Context, kube.Target) (*object.Body, error) { return a.body, nil }

func (a *slowAPI) Patch(_ context.Context, t kube.Target, _ types.PatchType, _ []byte, _ ...kube.Param) (*object.Body, error) {
	a.mu.Lock()
	a.now[t.Namespace]++
	a.most[t.Namespace] = max(a.most[t.Namespace], a.now[t.Namespace])
	a.mu.Unlock()
	time.Sleep(time.Second)
	a.mu.Lock()
	a.now[t.Namespace]--
	a.mu.Unlock()
	return a.body, nil
}

func sized(t *testing.T, namespace, name string, size int) *object.Body {
	t.Helper()
	body, err := object.Parse(fmt.Appendf(nil, `{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"1"},"spec":{"text":%q}}`,
		name, namespace, name, strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The API server processes a write to a large object for long, so a tenant with many of them
// has one in flight. Small objects, and those of other namespaces, do not wait for them.
func TestWritesToLargeObjectsOfANamespaceAreSentOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 5
		api := &slowAPI{body: sized(t, "a", "a", 1), now: map[string]int{}, most: map[string]int{}}
		var aside sync.Map
		p := &Processor{Heavy: &HeavyWrites{}, Aside: func(body *object.Body, call func()) { aside.Store(body.Namespace, true); call() }}
		var all sync.WaitGroup
		began := time.Now()
		took := sync.Map{}
		for namespace, size := range map[string]int{"large": heavyObject, "others": heavyObject, "medium": heavyPart, "small": 1000} {
			for i := range each {
				body := sized(t, namespace, fmt.Sprint(namespace, i), size)
				all.Go(func() {
					var asked patch.Patch
					asked.Merge(map[string]any{"spec": map[string]any{"size": "1"}})
					if _, err := p.apply(t.Context(), apply.Applier{API: api, Log: slog.New(slog.DiscardHandler)}, body, &asked, &patch.Patch{}, apply.Finalizer{}); err != nil {
						t.Error(err)
					}
					took.Store(namespace, time.Since(began))
				})
			}
		}
		all.Wait()
		for namespace, want := range map[string]struct {
			most int
			took time.Duration
		}{"large": {1, each * time.Second}, "others": {1, each * time.Second}, "medium": {4, 2 * time.Second}, "small": {each, time.Second}} {
			if last, _ := took.Load(namespace); api.most[namespace] != want.most || last != want.took {
				t.Errorf("%s: %d writes at the same time, all done after %v; want %d and %v", namespace, api.most[namespace], last, want.most, want.took)
			}
		}
		if _, small := aside.Load("small"); small {
			t.Error("a small object gave up its active slot for a write")
		}
		if _, large := aside.Load("large"); !large {
			t.Error("a large object waits in an active slot")
		}
		if n := p.Heavy.gate.Groups(); n > 0 {
			t.Errorf("%d namespaces are still known", n)
		}
	})
}

// A write that waits ends with its context, and is not sent.
func TestAWriteThatWaitsForOthersEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, body := &HeavyWrites{}, sized(t, "a", "a", heavyObject)
		leave, err := h.Enter(t.Context(), body, &patch.Patch{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.Enter(ctx, body, &patch.Patch{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		leave()
		if n := h.gate.Groups(); n > 0 {
			t.Errorf("%d namespaces are still known", n)
		}
	})
}

// A small object may get large results.
func TestLargePatchesAreHeavy(t *testing.T) {
	var asked patch.Patch
	asked.Set(strings.Repeat("x", heavyPart), "status", "result")
	body := sized(t, "a", "a", 1000)
	if h := (&HeavyWrites{}); h.limits(writeSize(body)) || !h.limits(writeSize(body, &asked)) {
		t.Error("the size of the patch does not count")
	}
}

// Clients can make the managedFields of a tiny object large, which the operator does not keep.
func TestWritesToObjectsWithLargeManagedFieldsAreHeavy(t *testing.T) {
	for size, want := range map[int]bool{1000: false, heavyPart / 2: true} {
		body, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"name":"a","managedFields":[{"manager":%q}]}}`, strings.Repeat("m", size)))
		if err != nil {
			t.Fatal(err)
		}
		if got := (&HeavyWrites{}).limits(writeSize(body)); got != want {
			t.Errorf("managedFields of %d bytes: got %t", size, got)
		}
	}
}
