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

// acceptable finds the first media type in the Accept header that ok agrees to;
// without a header, that is JSON as it is. The order of the header counts, not
// its q-values, which no client of the API uses.
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

// negotiate finds the form of the answer that the client prefers among those that
// the verb has.
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

// check says what is wrong with the form, given whether a list is to be shown. The
// real server finds that out when it has done what was asked, and so do we.
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
