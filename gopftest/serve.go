package gopftest

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxBody is the real server's limit for request bodies.
const maxBody = 3 << 20

// exchange is one request being served.
type exchange struct {
	*Cluster
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	log  *logged
}

// serve answers a request as a healthy server does.
func (x *exchange) serve() {
	rt, ok := parseRoute(x.r)
	if !ok {
		x.serveOther()
		return
	}
	s, err := x.scope(rt)
	if err == nil {
		err = x.serveObjects(s, rt.verb)
	}
	switch {
	case err == errNoSuchPath:
		http.NotFound(x.w, x.r)
	case err != nil:
		x.fail(err)
	}
}

func (x *exchange) serveObjects(s *scope, verb string) error {
	if err := s.setDryRun(verb, x.r.URL.Query()["dryRun"]); err != nil {
		return err
	}
	view, err := s.negotiate(x.r, verb)
	if err != nil {
		return err
	}
	if s.subresource != "" && verb != "get" && verb != "update" && verb != "patch" {
		return apierrors.NewMethodNotSupported(s.resource.groupResource(), verb)
	}
	switch verb {
	case "get":
		return x.answer(http.StatusOK, view)(s.get())
	case "create":
		if s.name != "" && !s.resource.custom() {
			return apierrors.NewMethodNotSupported(s.resource.groupResource(), verb)
		}
		obj, err := x.object()
		if err != nil {
			return err
		}
		return x.answer(http.StatusCreated, view)(s.create(obj))
	case "update":
		if s.name == "" {
			return s.nameless(verb)
		}
		obj, err := x.object()
		if err != nil {
			return err
		}
		return x.answer(http.StatusOK, view)(s.update(obj))
	case "patch":
		if s.name == "" {
			return s.nameless(verb)
		}
		kind, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";")
		return x.answer(http.StatusOK, view)(s.patch(types.PatchType(kind), x.body))
	case "delete":
		return x.serveDelete(s, view)
	case "deletecollection":
		return x.serveDeleteCollection(s, view)
	case "list":
		options, err := s.listOptions(x.r.URL.Query())
		if err != nil {
			return err
		}
		page, err := s.list(x.r.Context(), options)
		if err != nil {
			return err
		}
		if err := view.check(true); err != nil {
			return err
		}
		x.write(http.StatusOK, view.list(page))
		return nil
	case "watch":
		return x.serveWatch(s, view)
	default:
		return apierrors.NewMethodNotSupported(s.resource.groupResource(), verb)
	}
}

// nameless is the error of a change to a whole collection.
func (s *scope) nameless(verb string) error {
	if s.resource.custom() {
		return apierrors.NewBadRequest("name must be provided")
	}
	return apierrors.NewMethodNotSupported(s.resource.groupResource(), verb)
}

// setDryRun checks the parameter for those verbs that have it.
func (s *scope) setDryRun(verb string, values []string) error {
	kind, ok := map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions",
		"delete": "DeleteOptions", "deletecollection": "DeleteOptions"}[verb]
	if !ok || len(values) == 0 {
		return nil
	}
	s.dryRun = true
	if errs := metav1validation.ValidateDryRun(field.NewPath("dryRun"), values); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	return nil
}

// answer makes the answer of a result, if there is no error.
func (x *exchange) answer(code int, view *view) func(*entry, error) error {
	return func(e *entry, err error) error {
		if err == nil {
			err = view.check(false)
		}
		if err == nil {
			x.write(code, view.object(e))
		}
		return err
	}
}

func (x *exchange) serveDelete(s *scope, view *view) error {
	options, err := x.deleteOptions()
	if err != nil {
		return err
	}
	s.dryRun = s.dryRun || len(options.DryRun) > 0
	marked, done, err := s.delete(options)
	switch {
	case err != nil:
		return err
	case done != nil:
		x.write(http.StatusOK, encode(done))
	default:
		return x.answer(http.StatusOK, view)(marked, nil)
	}
	return nil
}

func (x *exchange) serveDeleteCollection(s *scope, view *view) error {
	options, err := x.deleteOptions()
	if err != nil {
		return err
	}
	chosen, err := s.listOptions(x.r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.list(x.r.Context(), chosen)
	if err != nil {
		return err
	}
	for _, e := range page.items {
		one := *s
		one.namespace, one.name = e.key.namespace, e.key.name
		if _, _, err := one.delete(options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := view.check(true); err != nil {
		return err
	}
	x.write(http.StatusOK, view.list(page))
	return nil
}

// deleteOptions come in the body, or in the query.
func (x *exchange) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(x.body) > 0 {
		if err := utiljson.Unmarshal(x.body, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	err := metainternalversionscheme.ParameterCodec.DecodeParameters(x.r.URL.Query(), metav1.SchemeGroupVersion, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}

// object decodes the body.
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

func (x *exchange) fail(err error) {
	status := statusOf(err)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	x.write(int(status.Code), encode(status))
}

func (x *exchange) write(code int, body []byte) { x.writeAs(mediaJSON, code, body) }

func (x *exchange) writeAs(mediaType string, code int, body []byte) {
	x.w.Header().Set("Content-Type", mediaType)
	x.w.WriteHeader(code)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(append(body[:len(body):len(body)], '\n')) // a client that is gone needs no answer
	}
}

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
