package gopftest

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Feature is a feature of the API server that some versions do not have.
type Feature string

// The features that can be switched off by [Cluster.Without].
const (
	// WatchList streams the initial list as the first events of a watch. It is on by
	// default in Kubernetes 1.32, and since 1.34.
	WatchList Feature = "WatchList"
	// Discovery is aggregated discovery in its final version, v2. Kubernetes has it
	// since 1.30.
	Discovery Feature = "discovery v2"
	// BetaDiscovery is aggregated discovery in its beta version, v2beta1. Kubernetes has
	// it before 1.35. Without both, clients request each API group version separately.
	BetaDiscovery Feature = "discovery v2beta1"
	// SelfSubjectReviews report to clients which user they are. Kubernetes has them
	// since 1.28, but an administrator can switch them off.
	SelfSubjectReviews Feature = "SelfSubjectReview"
	// MatchConditions decide in the API server whether a webhook is called. Kubernetes
	// has them from 1.28 on, but they can be switched off before 1.30: the server then
	// drops the field.
	MatchConditions Feature = "matchConditions"
	// OpenAPI are the schemas at /openapi/v3. Kubernetes has them since 1.24.
	OpenAPI Feature = "openapi v3"
)

// latestMinor is the minor version of Kubernetes that clusters imitate by default.
const latestMinor = 37

// PlayVersion makes an in-memory cluster report the version 1.MINOR of Kubernetes, and
// switches off the features that are not on by default in this version. All else stays
// as in 1.37. Call it before any client connects.
func (c *Cluster) PlayVersion(minor int) {
	c.memoryOnly("PlayVersion")
	c.minor.Store(int32(minor))
	if minor < 34 && minor != 32 {
		c.Without(WatchList)
	}
	if minor < 30 {
		c.Without(Discovery)
	}
}

// Without switches features of an in-memory cluster off.
func (c *Cluster) Without(features ...Feature) {
	c.memoryOnly("Without")
	for _, f := range features {
		c.missing.Store(f, true)
	}
}

// has reports whether the feature is on.
func (c *Cluster) has(f Feature) bool {
	_, missing := c.missing.Load(f)
	return !missing
}

// gitVersion returns the version that the cluster reports.
func (c *Cluster) gitVersion() (minor, git string) {
	n := c.minor.Load()
	if n == 0 {
		n = latestMinor
	}
	git = fmt.Sprintf("v1.%d.1", n)
	if c.alone {
		git += standaloneSuffix
	}
	return fmt.Sprint(n), git
}

// checkFeatures returns an error if the request needs a feature that is switched off.
func (x *exchange) checkFeatures(rt route) error {
	switch {
	case rt.group == authenticationv1.GroupName && rt.resource == "selfsubjectreviews" && !x.has(SelfSubjectReviews):
		return errNoSuchPath
	case rt.verb == "watch" && x.r.URL.Query().Has("sendInitialEvents") && !x.has(WatchList):
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
			field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
		})
	}
	return nil
}

// dropMissing removes the fields of features that the cluster lacks.
func (s *scope) dropMissing(obj *unstructured.Unstructured) {
	if s.resource.Group != "admissionregistration.k8s.io" || s.cluster.has(MatchConditions) {
		return
	}
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, hook := range hooks {
		delete(hook.(map[string]any), "matchConditions")
	}
	if hooks != nil {
		obj.Object["webhooks"] = hooks
	}
}

// discoveryVersion reports whether the cluster serves this version of discovery.
func (c *Cluster) discoveryVersion(asked string) bool {
	minor := c.minor.Load()
	return asked == "v2" && c.has(Discovery) || asked == "v2beta1" && c.has(BetaDiscovery) && minor > 0 && minor < 35
}
