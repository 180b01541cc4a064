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

// about returns the key of a response.
func about(namespace string, i int) tagKey {
	return tagKey{parent: fmt.Sprint("Thing/", namespace, "/", i)}
}

func TestStoredResponsesHaveATotalLimit(t *testing.T) {
	kept := newTags(1 << 20)
	body := []byte(strings.Repeat("x", 100_000))
	for i := range 50 {
		kept.set(tagged{key: about("a", i), tag: "t", body: body})
		kept.set(tagged{key: about("a", i), tag: "u", body: body}) // replaces the former
		if _, ok := kept.get(about("a", 0), 0); !ok {
			t.Fatalf("a response that is used was dropped after %d others", i)
		}
		if kept.size > kept.limit {
			t.Fatalf("%d bytes are kept", kept.size)
		}
	}
	if _, ok := kept.get(about("a", 39), 0); ok {
		t.Error("the responses that were not used are kept")
	}
	if last, ok := kept.get(about("a", 49), 0); !ok || last.tag != "u" || len(kept.byKey) != 10 {
		t.Errorf("%d responses are kept, want 10 with the newest", len(kept.byKey))
	}
	kept.set(tagged{key: about("a", 49), tag: "v", body: make([]byte, 2<<20)})
	if _, ok := kept.get(about("a", 49), 0); ok {
		t.Error("an outdated response is kept when the newer one is too large")
	}
	for i := range 50 {
		kept.drop(about("a", i))
	}
	if kept.size != 0 || len(kept.shares) > 0 {
		t.Errorf("%d bytes of nothing", kept.size)
	}
}

// A tenant with many parents must not drop the responses of others.
func TestTheNamespaceWithTheMostStoredResponsesLosesOne(t *testing.T) {
	kept := newTags(1 << 20)
	body := []byte(strings.Repeat("x", 100_000))
	kept.set(tagged{key: about("few", 0), tag: "t", body: body})
	for i := range 50 {
		kept.set(tagged{key: about("many", i), tag: "t", body: body})
	}
	kept.set(tagged{key: about("few", 1), tag: "t", body: body})
	for i := range 2 {
		if _, ok := kept.get(about("few", i), 0); !ok {
			t.Errorf("response %d of another namespace was dropped", i)
		}
	}
	if _, ok := kept.get(about("many", 49), 0); !ok {
		t.Error("the newest response is missing")
	}
}

func TestHooksShareTheLimitOfStoredResponses(t *testing.T) {
	url, kept := "http://hooks.test", newTags(keptResponses)
	var hooks []*hook
	for range 8 {
		h, err := newHook(t.Context(), "sync", &Hook{Webhook: &Webhook{URL: &url}}, nil, nil, roundTripper(func(r *http.Request) (*http.Response, error) {
			return respond(r, nil, map[string]any{"raw": strings.Repeat("x", 4<<20), "headers": map[string]any{"ETag": `"1"`}}), nil
		}), kept)
		if err != nil {
			t.Fatal(err)
		}
		h.etag = true
		hooks = append(hooks, h)
		if _, err := h.post(t.Context(), "Thing/default/p", nil); err != nil {
			t.Fatal(err)
		}
	}
	if kept.size > keptResponses || len(kept.byKey) != 3 {
		t.Errorf("the hooks keep %d responses with %d bytes", len(kept.byKey), kept.size)
	}
	for _, h := range hooks {
		h.end()
	}
	if kept.size != 0 {
		t.Errorf("hooks of stopped controllers keep %d bytes", kept.size)
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
