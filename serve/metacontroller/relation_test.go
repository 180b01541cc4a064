package metacontroller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// relating is a hook whose related objects are those of the resource in spec.related.
type relating struct {
	mu     sync.Mutex
	synced map[string]int // by parent: the related objects of the last sync
}

func (h *relating) RoundTrip(r *http.Request) (*http.Response, error) {
	var request struct {
		Parent  unstructured.Unstructured             `json:"parent"`
		Related map[string]map[string]json.RawMessage `json:"related"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if resource, _, _ := unstructured.NestedString(request.Parent.Object, "spec", "related"); strings.HasSuffix(r.URL.Path, "customize") && resource != "" {
		body = rules("{apiVersion: v1, resource: " + resource + ", namespace: " + request.Parent.GetNamespace() + "}")
	} else if !strings.HasSuffix(r.URL.Path, "customize") {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.synced == nil {
			h.synced = map[string]int{}
		}
		h.synced[request.Parent.GetName()] = len(request.Related["Secret.v1"])
	}
	return respond(r, nil, map[string]any{"body": body}), nil
}

func (h *relating) related(parent string) (objects int, synced bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	objects, synced = h.synced[parent]
	return objects, synced
}

// The objects of a tenant decide which resources its parents are related to.
func TestARelatedResourceThatCannotBeListedStopsOnlyItsParents(t *testing.T) {
	for name, tt := range map[string]struct {
		effect gopftest.Effect
		delay  time.Duration // of the parents of others
	}{
		"no permission":                   {gopftest.Fail(http.StatusForbidden), time.Second},
		"the API server does not respond": {gopftest.Hang(), relationWait + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := &relating{}
				c := newStage(t, Options{Transport: hook})
				lists := c.Fault(gopftest.Requests("list", "secrets"), tt.effect)
				watches := c.Fault(gopftest.Requests("watch", "secrets"), tt.effect)
				controller := controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"})
				customize := map[string]any{"version": V2, "webhook": map[string]any{"url": "http://hooks.test/customize"}}
				if err := unstructured.SetNestedMap(controller.Object, customize, "spec", "hooks", "customize"); err != nil {
					t.Fatal(err)
				}
				c.Create(t, controller)
				c.Create(t, &unstructured.Unstructured{Object: objectOf("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}}")})
				c.Create(t, &unstructured.Unstructured{Object: objectOf("{apiVersion: v1, kind: Namespace, metadata: {name: empty}}")})
				create := func(namespace, name, related string) {
					o := thing()
					o.SetNamespace(namespace)
					o.SetName(name)
					if err := unstructured.SetNestedField(o.Object, related, "spec", "related"); err != nil {
						t.Fatal(err)
					}
					c.Create(t, o)
				}
				for i := range 20 {
					create("default", fmt.Sprint("bad-", i), "secrets")
				}
				create("empty", "none", "secrets") // no Secret causes an event that queues it
				time.Sleep(tt.delay)
				create("default", "good", "")
				time.Sleep(time.Second)
				if _, synced := hook.related("good"); !synced {
					t.Error("the parent of another tenant was not synced")
				}
				time.Sleep(6 * time.Minute) // the next retries are 4 minutes later
				if _, synced := hook.related("bad-0"); synced {
					t.Error("a parent was synced without its related objects")
				}
				said := func(o *unstructured.Unstructured) bool {
					message, _, _ := unstructured.NestedString(o.Object, "message")
					return strings.Contains(message, "there is no list of the related resource secrets in apiVersion v1: the operator may not list and watch it")
				}
				if !slices.ContainsFunc(c.List(t, "v1/events", "default"), said) {
					t.Error("no event names the resource")
				}
				lists.Stop()
				watches.Stop()
				time.Sleep(time.Minute + relationWait) // more than the longest delay between two lists
				for i := range 20 {
					if n, synced := hook.related(fmt.Sprint("bad-", i)); n != 1 || !synced {
						t.Errorf("parent %d has %d related objects, want 1; synced: %v", i, n, synced)
					}
				}
				if _, synced := hook.related("none"); !synced {
					t.Error("the parent without related objects was not synced soon")
				}
			})
		})
	}
}
