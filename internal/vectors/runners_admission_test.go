package vectors_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/webhook"
)

// webhookID judges names and paths. Quirk 15 of Kopf's: what Kubernetes would
// refuse for its form is written so that it is accepted.
func webhookID(t *testing.T, v vector) {
	c := decode[struct {
		ID, Suffix, Name string
		Bare             string `json:"name_no_suffix"`
		URL              string `json:"url_from_https://h/p/"`
		FromAbsent       string `json:"service_path_from_absent"`
		FromPath         string `json:"service_path_from_/p/"`
	}](t, v.JSON)

	sameName(t, "name", admission.Name(c.ID, c.Suffix), strings.ToLower(c.Name))
	sameName(t, "name without suffix", admission.Name(c.ID, ""), strings.ToLower(c.Bare))
	if len(validation.IsDNS1123Subdomain(c.Name)) == 0 {
		sameName(t, "name that Kubernetes accepts", admission.Name(c.ID, c.Suffix), c.Name)
	}

	sameName(t, "url", admission.For(webhook.ClientConfig{URL: "https://h/p/"}, c.ID).URL, c.URL)

	behind := func(path string) string {
		return admission.For(webhook.ClientConfig{Service: &webhook.ServiceRef{Path: path}}, c.ID).Service.Path
	}
	fromAbsent, fromPath := c.FromAbsent, strings.Replace(c.FromPath, "//", "/", 1)
	if !acceptable(c.ID) {
		fromAbsent, fromPath = "/"+strings.ToLower(c.Bare), "/p/"+strings.ToLower(c.Bare)
	}
	sameName(t, "path of a service", behind(""), fromAbsent)
	sameName(t, "path below a path of a service", behind("/p/"), fromPath)
}

// acceptable tells whether Kubernetes takes the id as the path of a service.
func acceptable(id string) bool {
	for part := range strings.SplitSeq(id, "/") {
		if len(validation.IsDNS1123Subdomain(part)) > 0 {
			return false
		}
	}
	return true
}

func sameName(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
