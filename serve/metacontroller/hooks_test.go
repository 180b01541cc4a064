package metacontroller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// scripted is a hook server without a network.
type scripted struct {
	mu      sync.Mutex
	answers map[string][]map[string]any
	calls   []hookCall
}

type hookCall struct {
	path    string
	request any
	header  map[string]any
}

func (h *scripted) set(step vectorStep) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answers == nil {
		h.answers = map[string][]map[string]any{}
	}
	for name, list := range step.Hooks {
		h.answers[name] = list
	}
}

func (h *scripted) take() []hookCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

func (h *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(5 * time.Millisecond)
	if r.URL.Host == "<addr>" { // where nothing listens
		return nil, syscall.ECONNREFUSED
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request map[string]any
	if err := utiljson.Unmarshal(text, &request); err != nil {
		return nil, err
	}
	header := map[string]any{}
	for _, name := range []string{"Authorization", "If-None-Match"} {
		if value := r.Header.Get(name); value != "" {
			header[name] = value
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, hookCall{r.URL.Path, request, header})
	name := strings.TrimPrefix(r.URL.Path, "/")
	answer := map[string]any{"body": map[string]any{}}
	if list := h.answers[name]; len(list) > 0 {
		answer = list[0]
		if len(list) > 1 {
			h.answers[name] = list[1:]
		}
	}
	return respond(r, request, answer), nil
}

func respond(r *http.Request, request, answer map[string]any) *http.Response {
	response := &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r}
	if code, ok := number64(answer["status"]); ok {
		response.StatusCode = int(code)
	}
	headers, _ := answer["headers"].(map[string]any)
	for name, value := range headers {
		response.Header.Set(name, fmt.Sprint(value))
	}
	body := answer["body"]
	if description, ok := answer["computed"].(string); ok {
		body = compute(description, request, response.Header)
	}
	raw, _ := json.Marshal(body)
	raw = bytes.ReplaceAll(raw, []byte(jsonText("<uid>")), []byte(unknownUID))
	if text, ok := answer["raw"].(string); ok {
		raw = []byte(text)
	}
	response.Body = io.NopCloser(bytes.NewReader(raw))
	return response
}

var childList = regexp.MustCompile(`children (?:Leaf )?([a-z](?:, [a-z])*) with`)

// compute returns the answer of a hook that is described in words.
func compute(description string, request map[string]any, header http.Header) map[string]any {
	parent, _ := request["parent"].(map[string]any)
	if parent == nil {
		parent, _ = request["object"].(map[string]any)
	}
	u := unstructured.Unstructured{Object: parent}
	spec, _ := parent["spec"].(map[string]any)
	leaf := func(name string, spec map[string]any) any {
		return map[string]any{"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "p"}}, "spec": spec}
	}
	observed := 0
	for _, field := range []string{"children", "attachments"} {
		kinds, _ := request[field].(map[string]any)
		leaves, _ := kinds["Leaf.ctl.example.com/v1"].(map[string]any)
		observed += len(leaves)
	}
	n, _, _ := unstructured.NestedInt64(parent, "status", "n")
	switch {
	case strings.HasPrefix(description, "one attachment Leaf of-NAME"):
		return map[string]any{"attachments": []any{leaf("of-"+u.GetName(), map[string]any{"v": 1})}, "annotations": map[string]any{"seen": u.GetKind()}}
	case strings.Contains(description, "header ETag = the name"):
		header.Set("ETag", `"`+u.GetName()+`"`)
		return map[string]any{"children": []any{}, "status": map[string]any{"n": u.GetName()}}
	case strings.HasPrefix(description, "no children wanted"):
		return map[string]any{"children": []any{}, "status": map[string]any{"left": observed}, "finalized": observed == 0}
	case strings.HasPrefix(description, "no attachments wanted"):
		return map[string]any{"attachments": []any{}, "annotations": map[string]any{"bye": "x"}, "finalized": observed == 0}
	case strings.HasPrefix(description, "no children; status.n"), strings.HasPrefix(description, "no attachments; status.n"):
		return map[string]any{"status": map[string]any{"n": n + 1}}
	}
	var children []any
	if m := childList.FindStringSubmatch(description); m != nil {
		for _, name := range strings.Split(m[1], ", ") {
			fields := map[string]any{"v": spec["v"]}
			if strings.Contains(description, "spec.size") {
				fields["size"] = spec["size"]
			}
			children = append(children, leaf(name, fields))
		}
	}
	if strings.Contains(description, "ConfigMap m with data.v") {
		children = append(children, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m", "labels": map[string]any{"app": "p"}}, "data": map[string]any{"v": fmt.Sprint(spec["v"])}})
	}
	answer := map[string]any{"children": children}
	if !strings.Contains(description, "no status") {
		status := map[string]any{"conditions": []any{map[string]any{"type": "Own", "status": "True"}}}
		if strings.Contains(description, "{v}") {
			status["v"] = spec["v"]
		} else {
			delete(status, "conditions")
		}
		answer["status"] = status
	}
	return answer
}
