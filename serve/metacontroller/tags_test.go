package metacontroller

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStoredResponsesHaveATotalLimit(t *testing.T) {
	kept := tags{limit: 1 << 20}
	body := []byte(strings.Repeat("x", 100_000))
	for i := range 50 {
		kept.set(tagged{key: fmt.Sprint(i), tag: "t", body: body})
		kept.set(tagged{key: fmt.Sprint(i), tag: "u", body: body}) // replaces the former
		if kept.size > kept.limit {
			t.Fatalf("%d bytes are kept", kept.size)
		}
	}
	if _, ok := kept.get("39"); ok {
		t.Error("the oldest responses are kept")
	}
	if last, ok := kept.get("49"); !ok || last.tag != "u" || len(kept.byKey) != 10 || kept.order.Len() != 10 {
		t.Errorf("%d responses are kept, want 10 with the newest", len(kept.byKey))
	}
	kept.set(tagged{key: "49", tag: "v", body: make([]byte, 2<<20)})
	if _, ok := kept.get("49"); ok {
		t.Error("an outdated response is kept when the newer one is too large")
	}
	for i := range 50 {
		kept.drop(fmt.Sprint(i))
	}
	if kept.size != 0 || kept.order.Len() > 0 {
		t.Errorf("%d bytes of nothing", kept.size)
	}
}

// A tenant creates and deletes parents. The name of a deleted parent is used again.
func TestTheResponseAboutADeletedParentIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var matches []string
		hook := roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			matches = append(matches, r.Header.Get("If-None-Match"))
			return respond(r, nil, map[string]any{"body": map[string]any{}, "headers": map[string]any{"ETag": `"1"`}}), nil
		})
		c := newStage(t, Options{Transport: hook})
		controller := controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"})
		if err := unstructured.SetNestedField(controller.Object, true, "spec", "hooks", "sync", "webhook", "etag", "enabled"); err != nil {
			t.Fatal(err)
		}
		c.Create(t, controller)
		take := func() (taken []string) {
			time.Sleep(10 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			taken, matches = matches, nil
			return taken
		}
		c.Create(t, thing())
		take()
		c.Patch(t, things, "default", "p", map[string]any{"spec": map[string]any{"more": true}})
		if got := take(); len(got) == 0 || got[0] != `"1"` {
			t.Fatalf("the calls of a living parent have the tags %q", got)
		}
		c.Delete(t, things, "default", "p")
		take()
		c.Create(t, thing())
		if got := take(); len(got) == 0 || got[0] != "" {
			t.Errorf("the calls of a new parent have the tags %q", got)
		}
	})
}
