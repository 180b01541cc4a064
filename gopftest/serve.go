package gopftest

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// exchange is one request being served.
type exchange struct {
	*Cluster
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	log  *logged
}

// serve executes a request and writes the response.
func (x *exchange) serve() {
	rt, ok := parseRoute(x.r)
	if !ok {
		x.serveOther()
		return
	}
	err := x.checkFeatures(rt)
	if err == nil && rt.group == authenticationv1.GroupName && rt.resource == "selfsubjectreviews" && rt.verb == "create" {
		x.serveSelf()
		return
	}
	if err == nil && x.alone && rt.group == authorizationv1.GroupName && rt.verb == "create" {
		if err = x.serveAccessReview(rt); err == nil {
			return
		}
	}
	if err == nil {
		err = x.authorize(rt)
	}
	if err == nil {
		var s *scope
		if s, err = x.scope(rt); err == nil {
			s.mayCreate = func() error { rt.verb = "create"; return x.authorize(rt) }
			err = x.serveObjects(s, rt.verb)
		}
	}
	switch {
	case errors.Is(err, errNoSuchPath):
		http.NotFound(x.w, x.r)
	case err != nil:
		x.fail(err)
	}
}

// serveSelf serves SelfSubjectReviews, which report the user of the request.
func (x *exchange) serveSelf() {
	user, _ := userOf(x.r)
	x.write(http.StatusCreated, encode(&authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
		Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: user},
	}))
}

func (x *exchange) serveObjects(s *scope, verb string) error {
	s.manager, s.managed = x.manager(), x.r.URL.Query().Has("fieldManager")
	s.user, _ = userOf(x.r)
	s.warn = x.warn
	if err := s.setDryRun(verb, x.r.URL.Query()["dryRun"]); err != nil {
		return err
	}
	view, err := s.negotiate(x.r, verb)
	if err != nil {
		return err
	}
	if s.subresource == "scale" {
		return x.serveScale(s, verb)
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
		return x.servePatch(s, view)
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

// manager returns the field manager: that of the request, or the program in the user agent.
func (x *exchange) manager() string {
	program, _, _ := strings.Cut(x.r.UserAgent(), "/")
	return cmp.Or(x.r.URL.Query().Get("fieldManager"), program)
}

// warn adds a warning header to the response.
func (x *exchange) warn(text string) {
	if header, err := net.NewWarningHeader(299, "-", text); err == nil {
		x.w.Header().Add("Warning", header)
	}
}

// nameless is the error for a change of a whole collection.
func (s *scope) nameless(verb string) error {
	if s.resource.custom() {
		return apierrors.NewBadRequest("name must be provided")
	}
	return apierrors.NewMethodNotSupported(s.resource.groupResource(), verb)
}

// setDryRun checks the dryRun parameter of the verbs that support it.
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
