package metacontroller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const (
	things = "ctl.example.com/v1/things"
	leaves = "ctl.example.com/v1/leaves"
)

func newStage(t *testing.T, o Options) *gopftest.Cluster {
	t.Helper()
	c := gopftest.NewCluster(t, "configmaps", "secrets")
	c.Load(t, "testdata/definitions.yaml")
	c.Define(t, stageKinds[:5]...)
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	Declare(op, o)
	gopftest.Start(t, op, c)
	return c
}

func thing() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ctl.example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "p", "namespace": "default"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "p"}}},
	}}
}

func controllerOf(url string, child map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Group + "/" + Version, "kind": "CompositeController", "metadata": map[string]any{"name": "ctl", "labels": map[string]any{"mine": "yes"}},
		"spec": map[string]any{
			"parentResource": map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "things"}, "childResources": []any{child},
			"hooks": map[string]any{"sync": map[string]any{"webhook": map[string]any{"url": url + "/sync"}}},
		},
	}}
}

func TestAHookOfARealServerGetsItsChild(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Parent struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
			} `json:"parent"`
			Children map[string]map[string]any `json:"children"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": map[string]any{"seen": len(request.Children["Leaf.ctl.example.com/v1"])},
			"children": []any{map[string]any{
				"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": request.Parent.Metadata.Name + "-leaf", "labels": map[string]any{"app": "p"}},
			}},
		})
	}))
	defer server.Close()
	c := newStage(t, Options{})
	c.Create(t, thing())
	c.Create(t, controllerOf(server.URL, map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
	c.Wait(t, leaves, "default", "p-leaf", func(o *unstructured.Unstructured) bool { return metav1.GetControllerOf(o).Name == "p" })
	c.Wait(t, things, "default", "p", func(o *unstructured.Unstructured) bool {
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "seen")
		return seen == 1
	})
}

// answering is a hook that counts its calls.
type answering struct {
	calls atomic.Int32
	body  map[string]any
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.calls.Add(1)
	return respond(r, nil, map[string]any{"body": a.body}), nil
}

func TestKindsThatAreNotAllowedAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "labels": map[string]any{"app": "p"}}}
		hook := &answering{body: map[string]any{"children": []any{secret}}}
		c := newStage(t, Options{Transport: hook, AllowKinds: []string{"*.ctl.example.com"}})
		c.Create(t, thing())
		controller := controllerOf("http://hooks.test", map[string]any{"apiVersion": "v1", "resource": "secrets"})
		c.Create(t, controller)
		time.Sleep(10 * time.Second)
		if n := hook.calls.Load(); n != 0 {
			t.Errorf("a controller with a refused kind called its hook %d times", n)
		}
		c.Patch(t, "metacontroller.k8s.io/v1alpha1/compositecontrollers", "", "ctl", map[string]any{"spec": map[string]any{"childResources": nil}})
		time.Sleep(10 * time.Second)
		if hook.calls.Load() == 0 {
			t.Error("the corrected controller did not call its hook")
		}
		if list := c.List(t, "secrets", ""); len(list) > 0 {
			t.Errorf("got %v", list)
		}
	})
}

func TestOnlyTheTargetedControllersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &answering{body: map[string]any{}}
		target, _ := labels.Parse("mine=no")
		c := newStage(t, Options{Transport: hook, Target: target})
		c.Create(t, thing())
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		time.Sleep(10 * time.Second)
		if n := hook.calls.Load(); n != 0 {
			t.Errorf("the hook was called %d times", n)
		}
		c.Patch(t, "metacontroller.k8s.io/v1alpha1/compositecontrollers", "", "ctl", map[string]any{"metadata": map[string]any{"labels": map[string]any{"mine": "no"}}})
		time.Sleep(10 * time.Second)
		if hook.calls.Load() == 0 {
			t.Error("the hook was not called after the change of the label")
		}
	})
}

func TestAnIdleParentCausesNoCallAndATakeoverNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaf := map[string]any{"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "p"}}, "spec": map[string]any{"v": int64(1)}}
		hook := &answering{body: map[string]any{"children": []any{leaf}}}
		c := gopftest.NewCluster(t)
		c.Load(t, "testdata/definitions.yaml")
		c.Define(t, stageKinds[:5]...)
		start := func() func() {
			op := gopf.New(gopf.Identity("metacontroller.example.com"))
			Declare(op, Options{Transport: hook})
			return gopftest.Start(t, op, c)
		}
		stop := start()
		c.Create(t, thing())
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves", "updateStrategy": map[string]any{"method": "Recreate"}}))
		time.Sleep(10 * time.Second)
		calls := hook.calls.Load()
		time.Sleep(20 * time.Minute)
		if now := hook.calls.Load(); now != calls || calls == 0 {
			t.Errorf("an idle parent caused %d calls after %d", now-calls, calls)
		}
		stop()
		before := len(c.Requests())
		stop = start()
		defer stop()
		time.Sleep(10 * time.Second)
		for _, r := range c.Requests()[before:] {
			if r.Write() && !strings.Contains(r.Resource, "events") {
				t.Errorf("the next replica sent %s %s", r.Verb, r.Path)
			}
		}
		if hook.calls.Load() == calls {
			t.Error("the next replica called no hook")
		}
	})
}

func TestRetryAfterIsRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"3": 3 * time.Second, "0": 0, "": busyPause, "soon": busyPause, "-1": busyPause,
		now.Add(2 * time.Second).Format(time.RFC1123): 3 * time.Second, now.Add(-time.Hour).Format(time.RFC1123): 0,
	} {
		if got := RetryAfter(header, now); got != want {
			t.Errorf("%q: got %v, not %v", header, got, want)
		}
	}
}
