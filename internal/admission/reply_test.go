package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/handler"
)

// A response must not be several times as long as the review that causes it: package json writes
// some characters in six bytes.
func TestResponsesAreNotLongerThanTheirReviews(t *testing.T) {
	for name, char := range map[string]string{"brackets": "<", "letters": "x"} {
		v := newTestReviewer(calling("m", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
			r.Patch.Set(r.Body.Map()["spec"], "copy")
			return nil
		}))
		raw, err := json.Marshal(reviewOf("CREATE", map[string]any{"namespace": "ns", "object": map[string]any{
			"metadata": map[string]any{"name": "x", "namespace": "ns"}, "spec": map[string]any{"text": "TEXT"},
		}}))
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Replace(string(raw), "TEXT", strings.Repeat(char, 1<<20), 1)
		w := httptest.NewRecorder()
		v.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/m", strings.NewReader(body)))
		var answer outgoing
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || !answer.Response.Allowed {
			t.Fatalf("%s: code %d, %v, %.200s", name, w.Code, err, w.Body.String())
		}
		var ops []struct{ Value struct{ Text string } }
		if err := json.Unmarshal(answer.Response.Patch, &ops); err != nil || len(ops) != 1 || ops[0].Value.Text != strings.Repeat(char, 1<<20) {
			t.Errorf("%s: the patch has %d operations, %v", name, len(ops), err)
		}
		if got, size := w.Body.Len(), answer.size(); got > len(body)*3/2 || size < int64(got) {
			t.Errorf("%s: the response has %d bytes, estimated %d, for a review of %d", name, got, size, len(body))
		}
	}
}

func TestTooLongPatchesAreDenied(t *testing.T) {
	v := newTestReviewer(calling("m", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
		r.Patch.Set(strings.Repeat("x", maxPatch), "copy")
		return nil
	}))
	raw, err := json.Marshal(reviewOf("CREATE", map[string]any{"namespace": "ns", "object": map[string]any{"metadata": map[string]any{"name": "x", "namespace": "ns"}}}))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/m", strings.NewReader(string(raw))))
	var answer outgoing
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response.Allowed || answer.Response.Patch != nil {
		t.Errorf("code %d, %v, %.200s", w.Code, err, w.Body.String())
	}
}

// A handler may quote the object.
func TestLongDenialsAreCut(t *testing.T) {
	for name, err := range map[string]error{
		"denied":      &handler.DeniedError{Err: errors.New(strings.Repeat("é", 1<<20))},
		"failed":      errors.New(strings.Repeat("é", 1<<20)),
		"undecodable": &handler.UndecodableError{Err: errors.New(strings.Repeat("é", 1<<20))},
	} {
		if d := denied(err); len(d.message) > longestDenial+100 || !strings.HasSuffix(d.message, "é…") {
			t.Errorf("%s: the message has %d bytes", name, len(d.message))
		}
	}
	if d := denied(&handler.DeniedError{Err: errors.New("too small")}); d.message != "too small" {
		t.Errorf("got %q", d.message)
	}
}
