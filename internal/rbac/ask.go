package rbac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// API is the part of the API client that is needed.
type API interface {
	Create(ctx context.Context, t kube.Target, body []byte, params ...kube.Param) (*object.Body, error)
}

const (
	wideQuestions   = 200 // per round, for the whole cluster
	narrowQuestions = 60  // per round, for single namespaces
	atOnce          = 4
)

var (
	accessReviews = kind.Info{Group: "authorization.k8s.io", Version: "v1", Plural: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview"}
	// TokenReviews are the reviews of the tokens of clients; see [EndpointReviews].
	TokenReviews = kind.Info{Group: "authentication.k8s.io", Version: "v1", Plural: "tokenreviews", Kind: "TokenReview"}
	// SubjectReviews are the reviews of the access of other users; see [EndpointReviews].
	SubjectReviews = kind.Info{Group: "authorization.k8s.io", Version: "v1", Plural: "subjectaccessreviews", Kind: "SubjectAccessReview"}

	selfReviews = kind.Info{Group: "authentication.k8s.io", Version: "v1", Plural: "selfsubjectreviews", Kind: "SelfSubjectReview"}
)

// Asks reports whether the resource is one of reviews. A rejected review is no reason to
// review the permissions of the operator again.
func Asks(r schema.GroupResource) bool {
	for _, info := range []kind.Info{accessReviews, selfReviews, TokenReviews, SubjectReviews} {
		if r == info.GVR().GroupResource() {
			return true
		}
	}
	return false
}

// ask sends access reviews, up to the limit, and stores the results in allowed. It
// stops at the first error. It returns the number of questions beyond the limit.
func ask(ctx context.Context, api API, questions []question, limit int, allowed map[question]bool) (unasked int, err error) {
	unasked = max(len(questions)-limit, 0)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, q := range questions[:len(questions)-unasked] {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			answer, err := isAllowed(ctx, api, q)
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			allowed[q] = answer
		})
	}
	all.Wait()
	return unasked, context.Cause(ctx)
}

// MayFollow reports whether the operator may list and watch a resource in the whole
// cluster.
func MayFollow(ctx context.Context, api API, info kind.Info) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		allowed, err := isAllowed(ctx, api, question{verb: verb, group: info.Group, resource: info.Plural})
		if !allowed || err != nil {
			return false, err
		}
	}
	return true, nil
}

// isAllowed sends one access review.
func isAllowed(ctx context.Context, api API, q question) (bool, error) {
	attributes := map[string]string{"verb": q.verb, "group": q.group, "resource": q.resource}
	if q.subresource != "" {
		attributes["subresource"] = q.subresource
	}
	if q.name != "" {
		attributes["name"] = q.name
	}
	if q.namespace != "" {
		attributes["namespace"] = q.namespace
	}
	body, err := create(ctx, api, accessReviews, map[string]any{"resourceAttributes": attributes})
	if err != nil {
		return false, fmt.Errorf("review access to %s %s: %w", q.verb, q.resource, err)
	}
	allowed, _ := body.Lookup("status", "allowed")
	return allowed == true, nil
}

// WhoAmI returns the operator's user name at the API server. It is never empty without
// an error.
func WhoAmI(ctx context.Context, api API) (string, error) {
	body, err := create(ctx, api, selfReviews, nil)
	if err != nil {
		return "", fmt.Errorf("get the operator's user name: %w", err)
	}
	name, _ := body.Lookup("status", "userInfo", "username")
	text, _ := name.(string)
	if text == "" {
		return "", errors.New("get the operator's user name: the response has none")
	}
	return text, nil
}

func create(ctx context.Context, api API, info kind.Info, spec any) (*object.Body, error) {
	review := map[string]any{"apiVersion": info.APIVersion(), "kind": info.Kind}
	if spec != nil {
		review["spec"] = spec
	}
	raw, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return api.Create(ctx, kube.Target{Info: info}, raw)
}
