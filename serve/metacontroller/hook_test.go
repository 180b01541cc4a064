package metacontroller

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tenant could use these characters to make requests six times as large.
func TestRequestsOfHooksHaveNoEscapesOfHTML(t *testing.T) {
	url, got := "http://hooks.test", ""
	h, err := newHook(t.Context(), "sync", &Hook{Webhook: &Webhook{URL: &url}}, nil, nil, roundTripper(func(r *http.Request) (*http.Response, error) {
		text, err := io.ReadAll(r.Body)
		got = string(text)
		return respond(r, nil, map[string]any{"body": map[string]any{}}), err
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	parent := &unstructured.Unstructured{Object: map[string]any{"text": "<&>"}}
	if err := h.call(t.Context(), parent, map[string]any{"parent": parent.Object}, &CompositeHookResponse{}); err != nil || !strings.Contains(got, `"<&>"`) {
		t.Errorf("sent %s, %v", got, err)
	}
}
