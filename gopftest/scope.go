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

// scope is the target of a request. Its methods are the verbs of the API. They do not
// depend on HTTP, because they also serve the test's own writes.
type scope struct {
	cluster     *Cluster
	resource    *resource
	version     *servedVersion
	namespace   string // empty: all namespaces
	name        string // empty: all objects
	subresource string
	dryRun      bool
	manager     string // field manager of the write
	managed     bool   // the request names the manager explicitly
	unasked     bool   // do not call webhooks

	user authenticationv1.UserInfo // user of the write, for webhooks
	warn func(string)              // sends a warning to the client; may be nil

	mayCreate func() error // checks the permission of an apply to create the object; nil means that it is granted
}

func (s *scope) store() *store { return s.cluster.store }

func (s *scope) key() objectKey { return objectKey{s.namespace, s.name} }

func (s *scope) apiVersion() string {
	return Kind{Group: s.resource.Group, Version: s.version.name}.apiVersion()
}

func (s *scope) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: s.resource.Group, Kind: s.resource.Kind.Kind}
}

// checkType checks that obj is of the type that the endpoint serves, and converts it to
// the storage version.
func (s *scope) checkType(obj *unstructured.Unstructured) error {
	if obj.GetKind() == "" && !s.resource.custom() {
		obj.SetKind(s.resource.Kind.Kind) // the endpoint implies the type of built-in kinds
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

// checkNamespace checks that obj belongs to the namespace of the URL.
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

// validate checks a new state. A nil old state means a new object.
func (s *scope) validate(obj, old *unstructured.Unstructured) error {
	at := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(obj, s.resource.Namespaced, s.validateName(old == nil), at)
	if old != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, at)...)
		if s.resource.custom() {
			// The real API server checks this twice, and reports errors twice.
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

// validateName returns the rule for the name. Names of existing objects are not checked
// again.
func (s *scope) validateName(created bool) validation.ValidateNameFunc {
	switch {
	case !created:
		return path.ValidatePathSegmentName //nolint:staticcheck // the real API server still uses it
	case s.isNamespace():
		return validation.ValidateNamespaceName
	case s.resource.Group == "rbac.authorization.k8s.io":
		return path.ValidatePathSegmentName //nolint:staticcheck // the real API server still uses it
	default:
		return validation.NameIsDNSSubdomain
	}
}
