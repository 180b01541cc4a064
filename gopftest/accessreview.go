package gopftest

import (
	"encoding/json"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// serveAccessReview serves the reviews of "kubectl auth can-i". Nothing is stored.
func (x *exchange) serveAccessReview(rt route) error {
	user, judged := userOf(x.r)
	switch rt.resource {
	case "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.Unmarshal(x.body, &review); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SelfSubjectAccessReview"
		review.Status.Allowed = !judged || x.mayAccess(user, review.Spec.ResourceAttributes)
		x.write(http.StatusCreated, encode(review))
	case "selfsubjectrulesreviews":
		var review authorizationv1.SelfSubjectRulesReview
		if err := json.Unmarshal(x.body, &review); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SelfSubjectRulesReview"
		review.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}, Incomplete: judged,
		}
		if !judged {
			review.Status.ResourceRules = append(review.Status.ResourceRules,
				authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		}
		x.write(http.StatusCreated, encode(review))
	default:
		return errNoSuchPath
	}
	return nil
}

// mayAccess reports whether the roles in the cluster permit the access. Paths that are no
// resources are not permitted by roles here.
func (x *exchange) mayAccess(user authenticationv1.UserInfo, a *authorizationv1.ResourceAttributes) bool {
	return a != nil && x.allows(user, route{
		group: a.Group, version: a.Version, resource: a.Resource, subresource: a.Subresource,
		namespace: a.Namespace, name: a.Name, verb: a.Verb,
	})
}
