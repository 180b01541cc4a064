package gopftest

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxBody is the real API server's limit for request bodies, in bytes.
const maxBody = 3 << 20

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, err
}

// object decodes the request body as an object.
func (x *exchange) object() (*unstructured.Unstructured, error) {
	if media, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";"); media != "" && media != mediaJSON {
		return nil, errUnsupportedMediaType(mediaJSON)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(x.body, &content); err != nil || content == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type JSON object): %v", err))
	}
	return &unstructured.Unstructured{Object: content}, nil
}
