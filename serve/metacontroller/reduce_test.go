package metacontroller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/jsonvalue"
)

type responding func(*http.Request) (*http.Response, error)

func (f responding) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watched returns the objects that the caches get for the events of a watch, and the text of the
// response.
func watched(t *testing.T, query string, events ...string) (objects []*unstructured.Unstructured, texts []string) {
	t.Helper()
	c := &controller{finalizer: "f", env: environment{mark: newMark()}}
	transport := &reducer{responding(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(strings.Join(events, "\n")))}, nil
	}), c.env.mark}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/apis/example.com/v1/things?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(raw)); d.More(); {
		var line json.RawMessage
		var event struct {
			Object json.RawMessage `json:"object"`
		}
		fields := map[string]any{}
		err := d.Decode(&line)
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		if err == nil {
			fields, err = jsonvalue.Object(event.Object)
		}
		if err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		texts = append(texts, string(line))
		kept, err := c.shrink(&unstructured.Unstructured{Object: fields})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, kept.(*unstructured.Unstructured))
	}
	return objects, texts
}

func eventOf(name string, maps int) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q,"namespace":"ns","uid":"u","labels":{"a\"b":"c"},"managedFields":[{"manager":"m"}]},
		"spec":{"selector":{"matchLabels":{"x":"y"}},"items":[%s{}]},"gopf.dev/size":5}}`, name, strings.Repeat(`{"a":1},`, maps))
}

func TestLargeObjectsAreReducedBeforeTheyAreDecoded(t *testing.T) {
	const failure = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410}}`
	lines := []string{eventOf("small", 10), eventOf("large", 20_000), failure, eventOf("huge", 150_000), eventOf("after", 0)}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\n", "")
	}
	objects, got := watched(t, "watch=true", lines...)
	if len(objects) != len(lines) {
		t.Fatalf("%d events, want %d", len(objects), len(lines))
	}
	for _, i := range []int{0, 2, 4} {
		if got[i] != lines[i] || isStub(objects[i]) {
			t.Errorf("event %d was changed: %.200s", i, got[i])
		}
	}
	for i, refused := range map[int]bool{1: false, 3: true} {
		o := objects[i]
		selector, _, _ := unstructured.NestedString(o.Object, "spec", "selector", "matchLabels", "x")
		if !isStub(o) || tooLarge(o) != refused || len(got[i]) > 1000 || selector != "y" || o.GetLabels()[`a"b`] != "c" || o.GetUID() != "u" || o.GetManagedFields() != nil || o.GetKind() != "Thing" {
			t.Errorf("event %d became %.500s, and is kept as %v", i, got[i], o.Object)
		}
	}
	if _, got := watched(t, "limit=500", lines[1]); got[0] != lines[1] {
		t.Errorf("the response of another request was changed: %.200s", got[0])
	}
}

// A client knows the field that caches have for the size, but not the one of the reducer.
func TestNoObjectLooksReduced(t *testing.T) {
	if newMark() == newMark() {
		t.Error("all processes have the same mark")
	}
	c := &controller{env: environment{}}
	o := &unstructured.Unstructured{Object: map[string]any{"": int64(99_999_999), "metadata": map[string]any{"name": "a"}}}
	if kept, _ := c.shrink(o); isStub(kept.(*unstructured.Unstructured)) {
		t.Error("an object without the mark counts as reduced")
	}
}

func TestAWatchOfUnusualEvents(t *testing.T) {
	large := strings.Repeat(`{"a":1},`, 20_000)
	for _, event := range []string{`[` + large + `1]`, `{"type":"ADDED","object":[` + large + `1]}`, `{"type":"ADDED","object":{"metadata":[` + large + `1]}}`, `{"items":[` + large + `1]}`} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/?watch=1", nil)
		transport := &reducer{responding(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(event + `{"type":`))}, nil
		}), newMark()}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(response.Body)
		if string(raw) != event || err == nil {
			t.Errorf("%.60s: got %.100s (%v)", event, raw, err)
		}
	}
}

// The estimate counts braces in texts as objects.
func TestAnObjectWithBracesInTextsIsNotReduced(t *testing.T) {
	text := `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"},"data":{"dashboard":"` + strings.Repeat("{}", 20_000) + `"}}}`
	if jsonvalue.Memory([]byte(text)) < reducedFrom {
		t.Fatal("the estimate of the object is not large")
	}
	objects, _ := watched(t, "watch=true", text)
	if data, _, _ := unstructured.NestedString(objects[0].Object, "data", "dashboard"); len(data) != 40_000 {
		t.Errorf("the text has %d bytes", len(data))
	}
}
