package gopf_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
)

// demo is a running operator with a minimal API server for the examples of this
// package: KopfExamples and Pods in the namespace "default". To test operators, use
// package gopftest.
type demo struct {
	server *httptest.Server
	stop   func() // stops the operator and waits for its end

	mu      sync.Mutex
	changed *sync.Cond
	version int
	objects map[string]*unstructured.Unstructured // by their paths
	events  []watchEvent
	stopped bool
}

type watchEvent struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`

	version int
	path    string
}

const examplePath = "/apis/kopf.dev/v1/namespaces/default/kopfexamples/"

// start runs an operator until stop is called.
func start(op *gopf.Operator) *demo {
	d := &demo{objects: map[string]*unstructured.Unstructured{}}
	d.changed = sync.NewCond(&d.mu)
	d.server = httptest.NewServer(d)
	op.Settings.Scanning.Disabled = true
	op.Settings.Peering.Standalone = true
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- op.Run(ctx,
			gopf.Cluster(&rest.Config{Host: d.server.URL}),
			gopf.Namespaces("default"),
			gopf.Log(slog.New(slog.DiscardHandler)),
			gopf.WhenReady(func() { close(ready) }))
	}()
	d.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			fmt.Println("The operator failed:", err)
		}
		d.server.CloseClientConnections()
		d.mu.Lock()
		d.stopped = true // the server notices later that the connections are closed
		d.changed.Broadcast()
		d.mu.Unlock()
		d.server.Close()
	}
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
	}
	return d
}

// create creates a KopfExample.
func (d *demo) create(name, fields string) {
	object := map[string]any{}
	must(json.Unmarshal([]byte(fields), &object))
	object["apiVersion"], object["kind"] = "kopf.dev/v1", "KopfExample"
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metadata["name"], metadata["namespace"] = name, "default"
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(examplePath+name, object)
}

// patch applies a merge patch to a KopfExample.
func (d *demo) patch(name, patch string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.apply(examplePath+name, "application/merge-patch+json", []byte(patch))
	must(err)
}

// delete deletes a KopfExample and waits until its finalizers are removed.
func (d *demo) delete(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if object := d.objects[examplePath+name]; len(object.GetFinalizers()) == 0 {
		d.remove(examplePath + name)
		return
	}
	_, err := d.apply(examplePath+name, "application/merge-patch+json", []byte(`{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}`))
	must(err)
	for d.objects[examplePath+name] != nil {
		d.changed.Wait()
	}
}

// handled waits until all change handlers of the KopfExample are done, and returns the
// object.
func (d *demo) handled(name string) map[string]any {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if object := d.objects[examplePath+name]; object != nil && isHandled(object) {
			return object.DeepCopy().Object
		}
		d.changed.Wait()
	}
}

func isHandled(object *unstructured.Unstructured) bool {
	var last map[string]any
	for key, value := range object.GetAnnotations() {
		switch {
		case key == "kopf.zalando.org/last-handled-configuration":
			must(json.Unmarshal([]byte(value), &last))
		case key == "kopf.zalando.org/gopf.bound": // kept after handling
		case strings.HasPrefix(key, "kopf.zalando.org/"):
			return false // a handler is unfinished
		}
	}
	now := plain(map[string]any{"spec": object.Object["spec"], "labels": object.GetLabels()})
	labels, _, _ := unstructured.NestedStringMap(last, "metadata", "labels")
	return last != nil && reflect.DeepEqual(now, plain(map[string]any{"spec": last["spec"], "labels": labels}))
}

// plain returns v after a round trip through JSON.
func plain(v any) (result any) {
	text, err := json.Marshal(v)
	must(err)
	must(json.Unmarshal(text, &result))
	return result
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The rest is the API server.

func (d *demo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch path := r.URL.Path; {
	case discovery[path] != "":
		io.WriteString(w, discovery[path])
	case r.URL.Query().Get("watch") != "" && r.URL.Query().Get("sendInitialEvents") == "":
		d.watch(w, r)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusUnprocessableEntity) // only lists then
	case r.Method == http.MethodGet && (strings.HasSuffix(path, "/pods") || strings.HasSuffix(path, "/kopfexamples")):
		d.list(w, path)
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/pods"):
		object := map[string]any{}
		must(json.NewDecoder(r.Body).Decode(&object))
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		must(json.NewEncoder(w).Encode(d.add(path+"/"+name, object)))
	case r.Method == http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		must(err)
		object, err := d.apply(strings.TrimSuffix(path, "/status"), r.Header.Get("Content-Type"), body)
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			return
		}
		must(json.NewEncoder(w).Encode(object))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

var discovery = map[string]string{
	"/version": `{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}`,
	"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "kopf.dev",
		"versions": [{"groupVersion": "kopf.dev/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "kopf.dev/v1", "version": "v1"}}]}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
		{"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": true, "verbs": ["create", "get", "list", "watch", "patch", "delete"]}]}`,
	"/apis/kopf.dev/v1": `{"kind": "APIResourceList", "groupVersion": "kopf.dev/v1", "resources": [
		{"name": "kopfexamples", "singularName": "kopfexample", "kind": "KopfExample", "namespaced": true, "verbs": ["create", "get", "list", "watch", "patch", "delete"]},
		{"name": "kopfexamples/status", "kind": "KopfExample", "namespaced": true, "verbs": ["get", "patch"]}]}`,
}

func (d *demo) list(w io.Writer, path string) {
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(d.objects)) {
		if strings.HasPrefix(key, path+"/") {
			items = append(items, d.objects[key].Object)
		}
	}
	must(json.NewEncoder(w).Encode(map[string]any{
		"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(d.version)}, "items": items,
	}))
}

func (d *demo) watch(w http.ResponseWriter, r *http.Request) {
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	http.NewResponseController(w).Flush()
	for r.Context().Err() == nil && !d.stopped {
		for _, event := range d.events {
			if event.version > seen && strings.HasPrefix(event.path, r.URL.Path+"/") {
				seen = event.version
				if json.NewEncoder(w).Encode(event) != nil {
					return
				}
			}
		}
		http.NewResponseController(w).Flush()
		d.changed.Wait()
	}
}

func (d *demo) add(path string, object map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: object}
	u.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", d.version)))
	d.note("ADDED", path, u)
	return u.Object
}

func (d *demo) remove(path string) {
	d.note("DELETED", path, d.objects[path].DeepCopy())
	delete(d.objects, path)
}

// apply applies a merge patch or a JSON patch to an object.
func (d *demo) apply(path, contentType string, patch []byte) (map[string]any, error) {
	there, found := d.objects[path]
	if !found {
		return nil, fmt.Errorf("there is no %s", path)
	}
	before, err := json.Marshal(there.Object)
	must(err)
	after, err := jsonpatch.MergePatch(before, patch)
	if strings.HasPrefix(contentType, "application/json-patch+json") {
		operations, decodeErr := jsonpatch.DecodePatch(patch)
		must(decodeErr)
		after, err = operations.Apply(before)
	}
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	must(object.UnmarshalJSON(after))
	d.note("MODIFIED", path, object)
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		d.remove(path)
	}
	return object.Object, nil
}

// note stores an object and sends a watch event.
func (d *demo) note(kind, path string, object *unstructured.Unstructured) {
	d.version++
	object.SetResourceVersion(strconv.Itoa(d.version))
	d.objects[path] = object
	d.events = append(d.events, watchEvent{kind, object.DeepCopy().Object, d.version, path})
	d.changed.Broadcast()
}
