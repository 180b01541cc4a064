package gopftest

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

const mediaJSON = "application/json"

// acceptable returns the parameters of the first media type in the Accept header that
// ok accepts. Without a header, that is plain JSON. The order in the header counts; q
// values are ignored, because no client of the API uses them.
func acceptable(r *http.Request, ok func(params map[string]string) bool) (map[string]string, bool) {
	header := r.Header.Get("Accept")
	if header == "" {
		header = mediaJSON
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil || !slices.Contains([]string{mediaJSON, "application/*", "*/*"}, media) {
			continue
		}
		if ok(params) {
			return params, true
		}
	}
	return nil, false
}

// negotiate returns the form of the response that the client prefers.
func (s *scope) negotiate(r *http.Request, verb string) (*view, error) {
	forms := []string{"", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"}
	params, ok := acceptable(r, func(p map[string]string) bool {
		if p["as"] == "" && p["g"] == "" && p["v"] == "" {
			return true
		}
		return slices.Contains(forms, p["as"]) && p["g"] == metav1.GroupName && (p["v"] == "v1" || p["v"] == "v1beta1")
	})
	if !ok {
		accepted := []string{mediaJSON}
		if verb == "watch" {
			accepted = []string{mediaJSON + ";stream=watch"}
		}
		return nil, errNotAcceptable(accepted...)
	}
	v := &view{scope: s, as: params["as"], version: params["v"], headers: true}
	if v.as != "Table" {
		return v, nil
	}
	v.include = metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
	return v, nil
}

// check returns an error if the form does not suit the response: a list or an object.
// The real API server checks this only after it has executed the request.
func (v *view) check(list bool) error {
	switch v.as {
	case "Table":
		if errs := validation.ValidateTableOptions(&metav1.TableOptions{IncludeObject: v.include}); len(errs) > 0 {
			return apierrors.NewBadRequest("Unable to convert to Table as requested: " + errs[0].Error())
		}
	case "PartialObjectMetadata":
		if list {
			return notAcceptable("you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)")
		}
	case "PartialObjectMetadataList":
		if !list {
			return notAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list (*unstructured.Unstructured)")
		}
	}
	return nil
}
