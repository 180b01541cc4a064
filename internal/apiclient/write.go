package apiclient

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

const (
	names = 8 // maximum number of generated names to try
	sends = 3 // maximum number of sends of a write with lost responses
)

// Create creates an object with the fields in the collection t.
//
// If the response is lost, Create reads the object. An object with all the fields is
// taken as ours; another one is an "already exists" error; if there is none, the write
// is sent again. To make this possible, names with generateName are generated here and
// not by the server. Objects without a name cannot be read: the error is then a
// [kube.UnknownOutcomeError].
func (c *Objects) Create(ctx context.Context, t kube.Target, fields map[string]any, params ...kube.Param) (*object.Body, error) {
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

func (c *Objects) create(ctx context.Context, t kube.Target, fields map[string]any, params []kube.Param) (*object.Body, error) {
	raw, err := jsonvalue.Encode(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	one := t
	one.Name = text(fields, "name")
	return c.settled(ctx, one, func() (*object.Body, error) { return c.API.Create(ctx, t, raw, params...) }, func(now *object.Body, applied bool) (bool, error) {
		switch {
		case now == nil:
			return false, nil
		case applied || patch.Landed(chosen(fields), now.Map(), patch.Created):
			return true, nil
		}
		return false, apierrors.NewAlreadyExists(t.Info.GVR().GroupResource(), one.Name)
	})
}

// Apply applies the fields to the object (server-side apply), and creates it if it does
// not exist. If the response is lost, it is sent again unless the object has the
// fields.
func (c *Objects) Apply(ctx context.Context, t kube.Target, fields map[string]any, params ...kube.Param) (*object.Body, error) {
	raw, err := jsonvalue.Encode(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return c.settled(ctx, t, func() (*object.Body, error) { return c.API.Patch(ctx, t, types.ApplyPatchType, raw, params...) },
		func(now *object.Body, applied bool) (bool, error) {
			return now != nil && (applied || patch.Landed(chosen(fields), now.Map(), patch.Defaulted)), nil
		})
}

// Merge sends a merge patch. If the response is lost, it is sent again unless the
// object shows its effect.
func (c *Objects) Merge(ctx context.Context, t kube.Target, change map[string]any, params ...kube.Param) (*object.Body, error) {
	raw, err := jsonvalue.Encode(change)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return c.settled(ctx, t, func() (*object.Body, error) { return c.API.Patch(ctx, t, types.MergePatchType, raw, params...) },
		func(now *object.Body, applied bool) (bool, error) {
			if now == nil {
				return false, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
			}
			return applied || patch.Landed(chosen(change), now.Map(), patch.Defaulted), nil
		})
}

// Delete deletes an object. It is not an error if the object does not exist; with a
// uid, that includes an object whose name is now used by another one. Without a uid, a
// lost response is a [kube.UnknownOutcomeError], unless the object is gone or being
// deleted.
func (c *Objects) Delete(ctx context.Context, t kube.Target, o kube.DeleteOptions) error {
	err := c.API.Delete(ctx, t, o)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case !kube.Lost(err) && (o.UID == "" || !apierrors.IsConflict(err)):
		return err
	}
	now, missing := c.API.Get(ctx, t)
	switch {
	case apierrors.IsNotFound(missing):
		return nil
	case missing == nil && (o.UID != "" && now.UID != o.UID || kube.Lost(err) && now.Deleting):
		return nil
	}
	return err
}

// settled sends a write. If the response is lost, it reads the object and calls judge
// with it; nil means that it does not exist. applied is true if the write is known to
// have been applied. judge reports whether the object shows the effect of the write, or
// returns an error; otherwise the write is sent again.
func (c *Objects) settled(ctx context.Context, t kube.Target, send func() (*object.Body, error), judge func(now *object.Body, applied bool) (bool, error)) (*object.Body, error) {
	for attempt := 1; ; attempt++ {
		body, err := send()
		if c.Shared != nil && (t.Info.Group == "apiextensions.k8s.io" || t.Info.Group == "apiregistration.k8s.io") {
			c.Shared.Forget() // a handler may create objects of a kind that it has just installed
		}
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
			return nil, fmt.Errorf("%w; reading the object failed: %w", err, missing)
		}
		if ours, failed := judge(now, unknown.Code/100 == 2); ours || failed != nil {
			return now, failed
		}
	}
}

// generated returns a name as the server would generate it.
func generated(prefix string) string {
	const longest, end = 63, 5
	return prefix[:min(len(prefix), longest-end)] + rand.String(end)
}

func text(fields map[string]any, key string) string {
	v, _ := jsonvalue.Lookup(fields, "metadata", key)
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

// chosen returns the fields that the writer controls, without those that the server sets.
func chosen(fields map[string]any) map[string]any {
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		return fields
	}
	metadata = maps.Clone(metadata)
	for _, key := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"} {
		delete(metadata, key)
	}
	fields = maps.Clone(fields)
	fields["metadata"] = metadata
	return fields
}
