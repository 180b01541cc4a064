package vectors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
)

// request is one that was sent, as the transcripts have it.
type request struct {
	Method      string
	Path        string
	Query       map[string]string
	Headers     map[string]string
	ContentType string `json:"content_type"`
	Body        any
	By          string // somebody else than the operator
}

// wireCluster is a cluster that answers like the one of the transcripts: it
// has neither aggregated discovery nor streamed lists. It records what it is asked.
type wireCluster struct {
	t *testing.T

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any // by path
	listed   map[string]string         // versions of the last lists, by path
	watches  map[*io.PipeWriter]string // what they are about
	requests []request
}

func newWireCluster(t *testing.T, namespaces ...string) *wireCluster {
	c := &wireCluster{t: t, version: 100, objects: map[string]map[string]any{}, listed: map[string]string{}, watches: map[*io.PipeWriter]string{}}
	for _, name := range namespaces {
		c.objects["/api/v1/namespaces/"+name] = map[string]any{"metadata": map[string]any{"name": name, "uid": name, "resourceVersion": "98"}}
	}
	return c
}

// documents are those of the discovery.
var documents = map[string]string{
	"/api":                                  `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":                                 `{"kind":"APIGroupList","groups":[` + groupOf("admissionregistration.k8s.io") + "," + groupOf("kopf.dev") + "," + groupOf("apiextensions.k8s.io") + `]}`,
	"/api/v1":                               resourcesOf("namespaces Namespace false", "events Event true", "pods Pod true"),
	"/apis/admissionregistration.k8s.io/v1": resourcesOf("mutatingwebhookconfigurations MutatingWebhookConfiguration false", "validatingwebhookconfigurations ValidatingWebhookConfiguration false"),
	"/apis/apiextensions.k8s.io/v1":         resourcesOf("customresourcedefinitions CustomResourceDefinition false"),
	"/apis/kopf.dev/v1":                     resourcesOf("kopfexamples KopfExample true", "kopfexamples/status KopfExample true", "clusterkopfpeerings ClusterKopfPeering false", "kopfpeerings KopfPeering true"),
}

func groupOf(name string) string {
	version := fmt.Sprintf(`{"groupVersion":"%s/v1","version":"v1"}`, name)
	return fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, name, version, version)
}

func resourcesOf(lines ...string) string {
	var all []string
	for _, line := range lines {
		f := strings.Fields(line)
		all = append(all, fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":%s,"verbs":["get","list","watch","patch","create","delete"]}`, f[0], f[1], f[2]))
	}
	return `{"kind":"APIResourceList","resources":[` + strings.Join(all, ",") + `]}`
}

// RoundTrip answers a request.
func (c *wireCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := request{Method: r.Method, Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"),
		Headers: map[string]string{"User-Agent": r.UserAgent(), "Authorization": r.Header.Get("Authorization"), "Accept": r.Header.Get("Accept")}}
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		asked.Body = decode[any](c.t, raw)
	}
	for key, values := range r.URL.Query() {
		if asked.Query == nil {
			asked.Query = map[string]string{}
		}
		asked.Query[key] = values[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, asked)
	code, body := c.answer(r.Context(), asked)
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: body, Request: r}, nil
}

func (c *wireCluster) answer(ctx context.Context, r request) (code int, body io.ReadCloser) {
	text := func(code int, v any) (int, io.ReadCloser) {
		raw, err := json.Marshal(v)
		if err != nil {
			c.t.Error(err)
		}
		return code, io.NopCloser(strings.NewReader(string(raw)))
	}
	switch document, found := documents[r.Path]; {
	case found:
		return 200, io.NopCloser(strings.NewReader(document))
	case r.Query["sendInitialEvents"] != "":
		return text(422, map[string]any{})
	case r.Query["watch"] != "":
		// A probe goes on from the last event, which may be newer than the list.
		listed, _ := strconv.Atoi(c.listed[r.Path])
		if from, err := strconv.Atoi(r.Query["resourceVersion"]); err != nil || from < listed || from > c.version {
			c.t.Errorf("%s is watched from version %s, but the list was of %d and the last write of %d", r.Path, r.Query["resourceVersion"], listed, c.version)
		}
		reader, writer := io.Pipe()
		c.watches[writer] = r.Path
		c.catchUp(writer, r.Path)
		context.AfterFunc(ctx, func() { _ = writer.CloseWithError(ctx.Err()) })
		return 200, reader
	case r.Method == http.MethodGet && isCollection(r.Path):
		c.listed[r.Path] = strconv.Itoa(c.version)
		items := []any{}
		for _, path := range slices.Sorted(maps.Keys(c.objects)) {
			if path[:strings.LastIndex(path, "/")] == r.Path {
				items = append(items, c.objects[path])
			}
		}
		return text(200, map[string]any{"metadata": map[string]any{"resourceVersion": c.listed[r.Path]}, "items": items})
	case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "reviews"):
		return text(201, map[string]any{"status": map[string]any{"allowed": true}})
	case r.Method == http.MethodPost && isConfiguration(r.Path):
		object := jsonvalue.Clone(r.Body).(map[string]any)
		name := object["metadata"].(map[string]any)["name"].(string)
		c.objects[r.Path+"/"+name] = object
		return text(201, c.patched(r.Path+"/"+name, nil))
	case r.Method == http.MethodGet && isConfiguration(r.Path) && c.objects[r.Path] != nil:
		return text(200, c.objects[r.Path])
	case r.Method == http.MethodPost:
		return text(201, r.Body)
	case r.Method == http.MethodPatch && c.objects[strings.TrimSuffix(r.Path, "/status")] != nil:
		return text(200, c.patched(strings.TrimSuffix(r.Path, "/status"), r.Body.(map[string]any)))
	}
	return text(404, map[string]any{})
}

// isCollection tells the paths of collections from those of objects.
func isCollection(path string) bool {
	last := path[strings.LastIndex(path, "/")+1:]
	return slices.Contains([]string{"namespaces", "customresourcedefinitions", "clusterkopfpeerings", "kopfpeerings", "kopfexamples", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, last)
}

func (c *wireCluster) patched(path string, fields map[string]any) map[string]any {
	c.version++
	object := c.objects[path]
	patch.Apply(object, fields)
	if isConfiguration(path) {
		object["webhooks"] = completed(object["webhooks"], strings.Contains(path, "mutating"))
	}
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(c.version)
	if strings.Contains(path, "kopfpeerings") { // those who take part look at themselves
		for w, about := range c.watches {
			if about == path[:strings.LastIndex(path, "/")] {
				c.tell(w, object)
			}
		}
	}
	return object
}

// catchUp tells a new watch of what was written since its list.
func (c *wireCluster) catchUp(w *io.PipeWriter, collection string) {
	for path, object := range c.objects {
		version, _ := object["metadata"].(map[string]any)["resourceVersion"].(string)
		if path[:strings.LastIndex(path, "/")] == collection && number(c.t, version) > number(c.t, c.listed[collection]) {
			c.tell(w, object)
		}
	}
}

// tell sends the object as it is now to those who watch it.
func (c *wireCluster) tell(w *io.PipeWriter, object map[string]any) {
	event, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": object})
	if err != nil {
		c.t.Error(err)
	}
	go func() { _, _ = w.Write(event) }() // whoever has gone meanwhile is not interested
}

func number(t *testing.T, version string) int {
	t.Helper()
	n, err := strconv.Atoi(version)
	if err != nil {
		t.Error(err)
	}
	return n
}

// isConfiguration tells what is about webhook configurations.
func isConfiguration(path string) bool { return strings.Contains(path, "webhookconfigurations") }

// create makes an object and tells those who watch.
func (c *wireCluster) create(path string, object map[string]any, watched string) {
	c.mu.Lock()
	c.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(c.version)
	c.objects[path] = object
	event, err := json.Marshal(map[string]any{"type": "ADDED", "object": object})
	if err != nil {
		c.t.Error(err)
	}
	var tell []*io.PipeWriter
	for w, about := range c.watches {
		if about == watched {
			tell = append(tell, w)
		}
	}
	c.mu.Unlock()
	for _, w := range tell {
		_, _ = w.Write(event) // whoever has gone meanwhile is not interested
	}
}
