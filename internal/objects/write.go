package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

const (
	names = 8 // how many random names are tried before it is given up
	sends = 3 // how many times a write is sent whose answers get lost
)

// Create makes an object of the fields in the collection t.
//
// If the answer gets lost, the object is looked for: one with all that was asked
// for is taken for ours, another one is an "already exists" error, and if there
// is none it is sent again. So that this is possible, a name that is to be
// generated is generated here rather than by the server. Objects without a name
// cannot be looked for: then it is a [kube.UnknownOutcomeError].
func (c *Client) Create(ctx context.Context, t kube.Target, fields map[string]any, params ...kube.Param) (*object.Body, error) {
	prefix := text(fields, "generateName")
	if text(fields, "name") != "" || prefix == "" {
		return c.create(ctx, t, fields, params)
	}
	for attempt := 1; ; attempt++ {
		body, err := c.create(ctx, t, withName(fields, generated(prefix)), params)
		if !apierrors.IsAlreadyExists(err) || attempt == names {
			return body, err
		}
	}
}

func (c *Client) create(ctx context.Context, t kube.Target, fields map[string]any, params []kube.Param) (*object.Body, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	one := t
	one.Name = text(fields, "name")
	return c.settled(ctx, one, func() (*object.Body, error) { return c.API.Create(ctx, t, raw, params...) }, func(now *object.Body, applied bool) (bool, error) {
		switch {
		case now == nil:
			return false, nil
		case applied || has(now.Map(), chosen(fields), isEmpty):
			return true, nil
		}
		return false, apierrors.NewAlreadyExists(t.Info.GVR().GroupResource(), one.Name)
	})
}

// Apply makes the object have the fields, and makes it if it does not exist. An
// apply whose answer got lost is made again, unless its effect is there.
func (c *Client) Apply(ctx context.Context, t kube.Target, fields map[string]any, params ...kube.Param) (*object.Body, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return c.settled(ctx, t, func() (*object.Body, error) { return c.API.Patch(ctx, t, types.ApplyPatchType, raw, params...) },
		func(now *object.Body, applied bool) (bool, error) {
			return now != nil && (applied || has(now.Map(), chosen(fields), isNull)), nil
		})
}

// Merge changes the object by a merge patch. One whose answer got lost is made
// again, unless its effect is there.
func (c *Client) Merge(ctx context.Context, t kube.Target, patch map[string]any, params ...kube.Param) (*object.Body, error) {
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return c.settled(ctx, t, func() (*object.Body, error) { return c.API.Patch(ctx, t, types.MergePatchType, raw, params...) },
		func(now *object.Body, applied bool) (bool, error) {
			if now == nil {
				return false, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
			}
			return applied || has(now.Map(), chosen(patch), isNull), nil
		})
}

// Delete deletes an object. What does not exist is no error: with a uid, that is
// also an object whose name another one has now. Without a uid, a lost answer is
// a [kube.UnknownOutcomeError], unless the object is found to be gone.
func (c *Client) Delete(ctx context.Context, t kube.Target, o kube.DeleteOptions) error {
	err := c.API.Delete(ctx, t, o)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case !lost(err) && (o.UID == "" || !apierrors.IsConflict(err)):
		return err
	}
	now, missing := c.API.Get(ctx, t)
	switch {
	case apierrors.IsNotFound(missing):
		return nil
	case missing == nil && (o.UID != "" && now.UID != o.UID || lost(err) && now.Deleting):
		return nil
	}
	return err
}

func lost(err error) bool { return errors.As(err, new(*kube.UnknownOutcomeError)) }

// settled sends a write. If its answer gets lost, judge is given what is there
// now (nil for nothing), and whether the write was certainly made: it tells
// whether that is the effect of the write, or else an error, or that it is to be
// sent again.
func (c *Client) settled(ctx context.Context, t kube.Target, send func() (*object.Body, error), judge func(now *object.Body, applied bool) (bool, error)) (*object.Body, error) {
	for attempt := 1; ; attempt++ {
		body, err := send()
		unknown, isLost := errors.AsType[*kube.UnknownOutcomeError](err)
		if !isLost || t.Name == "" || attempt == sends {
			return body, err
		}
		read := t
		if t.Subresource == "status" { // the same object, and often the only one that may be read
			read.Subresource = ""
		}
		now, missing := c.API.Get(ctx, read)
		if missing != nil && !apierrors.IsNotFound(missing) {
			return nil, fmt.Errorf("%w; and it could not be found out: %w", err, missing)
		}
		if ours, failed := judge(now, unknown.Code/100 == 2); ours || failed != nil {
			return now, failed
		}
	}
}

// generated is a name as the server would generate it.
func generated(prefix string) string {
	const longest, end = 63, 5
	return prefix[:min(len(prefix), longest-end)] + rand.String(end)
}

func text(fields map[string]any, key string) string {
	v, _ := fieldpath.Lookup(fields, "metadata", key)
	s, _ := v.(string)
	return s
}

func withName(fields map[string]any, name string) map[string]any {
	fields = maps.Clone(fields)
	metadata := maps.Clone(fields["metadata"].(map[string]any))
	metadata["name"] = name
	fields["metadata"] = metadata
	return fields
}
