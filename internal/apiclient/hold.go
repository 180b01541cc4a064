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
	bytes  int
}

// freeRead is the memory of objects, in bytes, that does not count: most objects are smaller.
const freeRead = 256 << 10

// now reports whether there is memory at once.
func (h holding) now() bool {
	return h.bytes < freeRead || h.client.hold == nil || h.client.hold(h.bytes, false)
}

// wait waits for memory. The objects must not be kept meanwhile.
func (h holding) wait() error {
	if h.client.hold(h.bytes, true) {
		return nil
	}
	return h.refused()
}

func (h holding) refused() error {
	return fmt.Errorf("there is no memory for %d KiB of objects: running handlers have read others; read fewer, or increase the memory limit of the operator", h.bytes>>10)
}

// holding returns a function for the memory of a page of objects of the type.
func (c *Client) holding(obj client.Object) func(items []*object.Body) holding {
	if c.hold == nil {
		return nil
	}
	return func(items []*object.Body) holding {
		largest := 0
		for _, b := range items {
			largest = max(largest, memoryAs(obj, b))
		}
		return holding{c, sizeOf(items) + largest} // they are decoded one by one
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
	of := holding{c, body.Size() + memoryAs(obj, body)}
	if of.now() {
		return body, nil
	}
	body = nil
	err := of.wait()
	if err == nil {
		body, err = c.Objects.Get(ctx, t)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t, err)
	}
	if of.bytes = body.Size() + memoryAs(obj, body); !of.now() {
		return nil, fmt.Errorf("read %s: %w", t, of.refused())
	}
	return body, nil
}

// memoryAs estimates the memory of an object that is decoded into the type of obj.
func memoryAs(obj client.Object, b *object.Body) int {
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return b.Memory()
	}
	return b.MemoryAs(footprint.Of(reflect.TypeOf(obj)), footprint.Small)
}
