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

// Feature is something that not all API servers have.
type Feature string

// The features that a cluster in memory can do without; see [Cluster.Without].
const (
	// WatchList is the list that comes as the first events of a watch. It is on by
	// default in Kubernetes 1.32, and from 1.34 on.
	WatchList Feature = "WatchList"
	// Discovery is the discovery of all groups at once in its final version. Kubernetes
	// has it from 1.30 on.
	Discovery Feature = "discovery v2"
	// BetaDiscovery is the same in its beta version, v2beta1. Kubernetes has it before
	// 1.35. Without both, every version of every group has a document of its own.
	BetaDiscovery Feature = "discovery v2beta1"
	// SelfSubjectReviews tell clients who they are. Kubernetes has them from 1.28 on,
	// but they can be switched off.
	SelfSubjectReviews Feature = "SelfSubjectReview"
	// MatchConditions decide in the API server whether a webhook is called. Kubernetes
	// has them from 1.28 on, but they can be switched off before 1.30: the server then
	// drops the field.
	MatchConditions Feature = "matchConditions"
)

// latestMinor is the version that clusters in memory are like.
const latestMinor = 37

// PlayVersion makes a cluster in memory have the version 1.MINOR of Kubernetes, and
// only those of the features that this version has by default. It must be called
// before there are clients. Everything else stays as in 1.37.
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

// Without makes a cluster in memory do without features.
func (c *Cluster) Without(features ...Feature) {
	c.memoryOnly("Without")
	for _, f := range features {
		c.missing.Store(f, true)
	}
}

// has reports whether the cluster has the feature.
func (c *Cluster) has(f Feature) bool {
	_, missing := c.missing.Load(f)
	return !missing
}

// gitVersion is the version that the cluster reports.
func (c *Cluster) gitVersion() (minor, git string) {
	n := c.minor.Load()
	if n == 0 {
		n = latestMinor
	}
	return fmt.Sprint(n), fmt.Sprintf("v1.%d.1", n)
}

// checkFeatures refuses requests that need a feature which the cluster does without.
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

// dropMissing removes the fields of features which the cluster does without.
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

// discoveryVersion reports whether the cluster has this version of discovery.
func (c *Cluster) discoveryVersion(asked string) bool {
	minor := c.minor.Load()
	return asked == "v2" && c.has(Discovery) || asked == "v2beta1" && c.has(BetaDiscovery) && minor > 0 && minor < 35
}
