package metacontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits of the memory of objects, by the estimate of footprint. A usual object of 1 MB as JSON
// has about 8 MiB. A list of many small maps has 45 bytes for each byte of JSON.
const (
	// keptSize is the size of the largest objects that caches keep whole. Of larger ones, they
	// keep the metadata; a sync reads the rest.
	keptSize = 1 << 20
	// largestSize is the size of the largest objects that a sync reads.
	largestSize = 16 << 20
	// largestSync is the limit for all objects above keptSize in one sync.
	largestSync = 64 << 20
	// largeSyncs is the number of syncs of a controller that may hold such objects at a time.
	largeSyncs = 2
)

// warnInterval is the least time between two warnings about objects of one parent that are too
// large.
const warnInterval = 10 * time.Minute

// sizeField is the field of a stub with the size of the whole object. Its value is a
// [json.Number]. Objects from the API server never have values of that type, so no client can
// create an object that looks like a stub.
const sizeField = "gopf.dev/size"

// errLarge is the error of a sync that needs a slot, because it needs large objects.
var errLarge = errors.New("the sync needs large objects")

// tooLargeError is the error of a sync that needs an object, or a sum of objects, above the
// limits.
type tooLargeError struct{ text string }

func (e *tooLargeError) Error() string { return e.text }

// footprint returns the approximate memory of a decoded value in bytes.
func footprint(value any) (bytes int) {
	switch v := value.(type) {
	case map[string]any:
		bytes = 48
		if n := len(v); n > 8 {
			bytes += 64 * n
		} else if n > 0 {
			bytes += 288 // maps grow in groups of 8
		}
		for name, one := range v {
			bytes += len(name) + footprint(one)
		}
	case []any:
		bytes = 24
		for _, one := range v {
			bytes += 16 + footprint(one)
		}
	case string:
		bytes = 16 + len(v)
	default:
		bytes = 8
	}
	return bytes
}

// shrink prepares an object for the cache: without managedFields, and as a stub if it is large.
func (c *controller) shrink(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || isStub(u) {
		return o, nil
	}
	u.SetManagedFields(nil)
	size := c.reducedSize(u)
	if size == 0 {
		if size = footprint(u.Object); size <= keptSize {
			return u, nil
		}
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	if footprint(metadata) > keptSize {
		size, metadata = max(size, largestSize+1), c.leastMetadata(u, metadata)
	}
	stub := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata, sizeField: json.Number(strconv.Itoa(size))}
	// Events of orphans need the selectors of parents.
	if selector, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "selector"); ok && footprint(selector) <= keptSize/4 {
		stub["spec"] = map[string]any{"selector": selector}
	}
	return &unstructured.Unstructured{Object: stub}, nil
}

// reducedSize returns the size of an object that the [reducer] has reduced, or 0.
func (c *controller) reducedSize(u *unstructured.Unstructured) int {
	if c.env.mark == "" {
		return 0
	}
	size, _ := u.Object[c.env.mark].(int64)
	return int(size)
}

// leastMetadata returns the part of metadata without which no event of the object can be
// handled. The API server limits annotations to 256 KiB. It does not limit the rest.
func (c *controller) leastMetadata(u *unstructured.Unstructured, metadata map[string]any) map[string]any {
	least := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "annotations"} {
		if value, ok := metadata[name]; ok {
			least[name] = value
		}
	}
	refs, _ := metadata["ownerReferences"].([]any)
	for _, ref := range refs {
		if fields, _ := ref.(map[string]any); fields["controller"] == true {
			least["ownerReferences"] = []any{ref}
			break
		}
	}
	if slices.Contains(u.GetFinalizers(), c.finalizer) {
		least["finalizers"] = []any{c.finalizer}
	}
	return least
}

// isStub reports whether the cache has only the metadata of an object.
func isStub(obj *unstructured.Unstructured) bool {
	_, ok := obj.Object[sizeField].(json.Number)
	return ok
}

// stubSize returns the size of the object of a stub, or 0 for whole objects.
func stubSize(obj *unstructured.Unstructured) int {
	number, _ := obj.Object[sizeField].(json.Number)
	size, _ := strconv.Atoi(string(number))
	return size
}

// tooLarge reports whether a cached object is too large for syncs.
func tooLarge(obj *unstructured.Unstructured) bool { return stubSize(obj) > largestSize }

// whole returns a cached object, and reads it if the cache has a stub. Nil means that it is
// gone. The result must not be changed. Without a slot for large objects, it returns errLarge.
func (s *step) whole(ctx context.Context, r resource, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	size := stubSize(obj)
	if size == 0 {
		return obj, nil
	}
	if err := s.reserve(obj, size); err != nil {
		return nil, err
	}
	live, err := s.in(r, obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != obj.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live.SetManagedFields(nil)
	switch now := footprint(live.Object); {
	case now > largestSize:
		return nil, tooLargeObject(obj, now)
	case now > size:
		err = s.reserve(obj, now-size)
	}
	return live, err
}

// reserve counts the memory of an object that a sync reads.
func (s *step) reserve(obj *unstructured.Unstructured, size int) error {
	if size > largestSize {
		return tooLargeObject(obj, size)
	}
	if !s.slot {
		return errLarge
	}
	if s.size += size; s.size > largestSync {
		return &tooLargeError{fmt.Sprintf("the large objects of this sync need more than %d MiB of memory; make them smaller, or let the parent select fewer", largestSync>>20)}
	}
	return nil
}

func tooLargeObject(obj *unstructured.Unstructured, size int) error {
	return &tooLargeError{fmt.Sprintf("%s needs about %d MiB of memory, and the limit is %d MiB; make the object smaller, or split it", describe(obj), (size+1<<20-1)>>20, largestSize>>20)}
}

// mayWarn reports whether a warning about objects of a parent that are too large is due.
func (c *controller) mayWarn(k key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.warned[k]; ok && time.Since(last) < warnInterval {
		return false
	}
	if c.warned == nil {
		c.warned = map[key]time.Time{}
	}
	c.warned[k] = time.Now()
	return true
}
