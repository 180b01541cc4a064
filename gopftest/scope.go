package gopftest

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scope is what a request is about. Its methods are the verbs of the API; they
// know nothing of HTTP, so that tests' own writes take the same way.
type scope struct {
	cluster     *Cluster
	resource    *resource
	version     *servedVersion
	namespace   string // empty: all of them
	name        string // empty: all of them
	subresource string
	dryRun      bool
	manager     string // who writes, for the owners of fields
	managed     bool   // the request names the manager
	unasked     bool   // webhooks are not asked

	user authenticationv1.UserInfo // who writes, for webhooks
	warn func(string)              // tells the client; nil if there is none
}

func (s *scope) store() *store { return s.cluster.store }

func (s *scope) key() objectKey { return objectKey{s.namespace, s.name} }

func (s *scope) apiVersion() string {
	return Kind{Group: s.resource.Group, Version: s.version.name}.apiVersion()
}

func (s *scope) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: s.resource.Group, Kind: s.resource.Kind.Kind}
}

// checkType makes sure that a body is what the endpoint serves, and turns it into
// the version that is stored.
func (s *scope) checkType(obj *unstructured.Unstructured) error {
	if obj.GetKind() == "" && !s.resource.custom() {
		obj.SetKind(s.resource.Kind.Kind) // built-in types are known by the endpoint
	}
	if obj.GetAPIVersion() == "" && !s.resource.custom() {
		obj.SetAPIVersion(s.apiVersion())
	}
	switch {
	case obj.GetKind() == "":
		return apierrors.NewBadRequest("Object 'Kind' is missing in '" + string(encode(obj.Object)) + "'")
	case obj.GetAPIVersion() != s.apiVersion():
		return apierrors.NewBadRequest("the API version in the data (" + obj.GetAPIVersion() +
			") does not match the expected API version (" + s.apiVersion() + ")")
	case obj.GetKind() != s.resource.Kind.Kind && !s.resource.custom():
		return apierrors.NewBadRequest(obj.GetKind() + " in version \"" + s.version.name + "\" cannot be handled as a " +
			s.resource.Kind.Kind + ": unknown conversion")
	}
	obj.SetAPIVersion(s.resource.apiVersion())
	if s.resource.custom() {
		return nil
	}
	return s.throughType(obj)
}

// checkNamespace makes sure that the body belongs into the namespace of the URL.
func (s *scope) checkNamespace(obj *unstructured.Unstructured) error {
	switch {
	case obj.GetNamespace() == s.namespace:
	case obj.GetNamespace() == "" || !s.resource.Namespaced:
		obj.SetNamespace(s.namespace)
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// validate checks a new state; old is nil for a new object.
func (s *scope) validate(obj, old *unstructured.Unstructured) error {
	at := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(obj, s.resource.Namespaced, s.validateName(old == nil), at)
	if old != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, at)...)
		if s.resource.custom() {
			// The real server looks twice, and says so.
			errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, at)...)
		}
	}
	if kind := s.resource.Kind.Kind; obj.GetKind() != kind {
		errs = field.ErrorList{field.Invalid(field.NewPath("kind"), obj.GetKind(), "must be "+kind)}
	} else {
		errs = append(errs, s.version.schema.validate(obj, old, s.subresource)...)
		errs = append(errs, s.validateDefinition(obj, old)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), errs)
	}
	return nil
}

// validateName returns the rule for new names; old ones are not judged again.
func (s *scope) validateName(created bool) validation.ValidateNameFunc {
	switch {
	case !created:
		return path.ValidatePathSegmentName //nolint:staticcheck // the server uses it still
	case s.isNamespace():
		return validation.ValidateNamespaceName
	case s.resource.Group == "rbac.authorization.k8s.io":
		return path.ValidatePathSegmentName //nolint:staticcheck // the server uses it still
	default:
		return validation.NameIsDNSSubdomain
	}
}
