package apiclient

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// holding is the memory of objects that a handler has read, which it may keep until it returns.
// Clients of the cluster choose how large they are, and how many handlers read them.
type holding struct {
	client *Client
	of     string
	bytes  int
}

// now reports whether there is memory at once.
func (h holding) now(ctx context.Context) bool {
	return h.client.hold == nil || h.client.hold(ctx, h.of, h.bytes, false, false)
}

// wait waits for memory. The objects must not be kept meanwhile.
func (h holding) wait(ctx context.Context) error {
	if h.client.hold(ctx, h.of, h.bytes, true, false) {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w, while waiting for memory", context.Cause(ctx))
	}
	return h.refused()
}

func (h holding) refused() error {
	return fmt.Errorf("there is no memory for %d KiB of objects: running handlers have read others; read fewer, use client.Each instead of client.List, or increase the memory limit of the operator", h.bytes>>10)
}

// holding returns a function for the memory of the pages of a list of objects of the type. The
// caller of [client.List] keeps all pages, others one at a time.
func (c *Client) holding(obj client.Object, namespace string, o *client.Options) func(page int, items []*object.Body) holding {
	if c.hold == nil {
		return nil
	}
	of := fmt.Sprintf("list %T %s %s %s %s", obj, o.Resource, namespace, o.LabelSelector, o.FieldSelector)
	return func(page int, items []*object.Body) holding {
		largest, all := 0, 0
		for _, b := range items {
			memory := memoryAs(obj, b)
			largest, all = max(largest, memory), all+memory
		}
		if o.Keep {
			return holding{c, fmt.Sprint(of, " ", page), all}
		}
		return holding{c, of, sizeOf(items) + largest} // they are decoded one by one
	}
}

// sizeOf returns the size of the JSON of the objects.
func sizeOf(items []*object.Body) (size int) {
	for _, b := range items {
		size += b.Size()
	}
	return size
}

// read reads one object of the type.
func (c *Client) read(ctx context.Context, obj client.Object, t kube.Target) (*object.Body, error) {
	body, err := c.Objects.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	return c.held(ctx, obj, t, body)
}

// held returns the body of an object when there is memory for the object. The body is not kept
// while the handler waits: it is read again.
func (c *Client) held(ctx context.Context, obj client.Object, t kube.Target, body *object.Body) (*object.Body, error) {
	of := holding{c, nameOf(t), memoryOf(obj, body)}
	if of.now(ctx) {
		return body, nil
	}
	body = nil
	err := of.wait(ctx)
	if err == nil {
		body, err = c.Objects.Get(ctx, t)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t, err)
	}
	if of.bytes = memoryOf(obj, body); !of.now(ctx) {
		return nil, fmt.Errorf("read %s: %w", t, of.refused())
	}
	return body, nil
}

func nameOf(t kube.Target) string { return fmt.Sprint("object ", t) }

const (
	// largeBody is the size of a body, in bytes, from which on it counts as well: it is freed only
	// some time after it was decoded.
	largeBody = 256 << 10
	// smallRead is the memory of a decoded object, in bytes, up to which it is not estimated.
	smallRead = 1 << 10
)

// memoryOf estimates the memory of an object that is read and decoded into the type of obj.
func memoryOf(obj client.Object, b *object.Body) int {
	if b.Size() < largeBody {
		return memoryAs(obj, b)
	}
	return b.Size() + memoryAs(obj, b)
}

// memoryAs estimates the memory of an object that is decoded into the type of obj.
func memoryAs(obj client.Object, b *object.Body) int {
	memory := 0
	if _, ok := obj.(*unstructured.Unstructured); ok {
		memory = b.Memory()
	} else {
		memory = b.MemoryAs(footprint.Of(reflect.TypeOf(obj)), smallRead)
	}
	return max(memory, b.Size(), smallRead)
}
