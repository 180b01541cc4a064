package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
)

// API is the part of the API client that is needed.
type API interface {
	Create(ctx context.Context, t kube.Target, body []byte, params ...kube.Param) (*object.Body, error)
}

// verdict is the decision about a request.
type verdict int

// The verdicts.
const (
	unclear   verdict = iota // no decision: the request is refused, and the verdict is not kept
	allowed                  // the client may read the path
	unknown                  // the token is not valid
	forbidden                // the user of the token has no permission
)

// user is a user as the API server knows it.
type user struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// review asks the API server who the client is, and whether it may read the path.
func review(ctx context.Context, api API, token, path string) (verdict, error) {
	var who struct {
		Status *struct {
			Authenticated bool `json:"authenticated"`
			User          user `json:"user"`
		} `json:"status"`
	}
	if err := create(ctx, api, rbac.TokenReviews, map[string]any{"token": token}, &who); err != nil {
		return unclear, fmt.Errorf("review the token: %w", err)
	}
	switch {
	case who.Status == nil:
		return unclear, errors.New("review the token: the response has no status")
	case !who.Status.Authenticated, who.Status.User.Username == "":
		return unknown, nil
	}
	var may struct {
		Status *struct {
			Allowed bool `json:"allowed"`
			Denied  bool `json:"denied"`
		} `json:"status"`
	}
	u := who.Status.User
	spec := map[string]any{"user": u.Username, "nonResourceAttributes": map[string]any{"path": path, "verb": "get"}}
	if u.UID != "" {
		spec["uid"] = u.UID
	}
	if len(u.Groups) > 0 {
		spec["groups"] = u.Groups
	}
	if len(u.Extra) > 0 {
		spec["extra"] = u.Extra
	}
	if err := create(ctx, api, rbac.SubjectReviews, spec, &may); err != nil {
		return unclear, fmt.Errorf("review the access to %s: %w", path, err)
	}
	switch {
	case may.Status == nil:
		return unclear, fmt.Errorf("review the access to %s: the response has no status", path)
	case !may.Status.Allowed, may.Status.Denied:
		return forbidden, nil
	}
	return allowed, nil
}

// create sends a review, and decodes the response.
func create(ctx context.Context, api API, info kind.Info, spec map[string]any, into any) error {
	raw, err := json.Marshal(map[string]any{"apiVersion": info.APIVersion(), "kind": info.Kind, "spec": spec})
	if err != nil {
		return err
	}
	body, err := api.Create(ctx, kube.Target{Info: info}, raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(body.Raw(), into)
}
