// Package apiclient reads and writes objects of any kind for handlers. If the response to
// a write is lost, it confirms the write by reading the object.
package apiclient

import (
	"context"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// API is the part of the API client that is needed.
type API interface {
	Discover(ctx context.Context, groups ...string) (kube.Discovery, error)
	Get(context.Context, kube.Target) (*object.Body, error)
	Page(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, page string) ([]*object.Body, string, error)
	List(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, each func(*object.Body) error) (resourceVersion string, err error)
	Create(context.Context, kube.Target, []byte, ...kube.Param) (*object.Body, error)
	Patch(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (*object.Body, error)
	Delete(context.Context, kube.Target, kube.DeleteOptions) error
}

// Objects is the API for handlers, with endpoints instead of Go types. It is safe for concurrent use.
type Objects struct {
	// API is the API client. nil means that only known resources can be looked up.
	API API
	// Known returns the known resources of the cluster.
	Known func() []kind.Info
	// Shared has the discoveries of all clients of an operator. nil means that each lookup of an
	// unknown resource runs one.
	Shared *Discoveries
}

// Offline returns a client that only looks up known resources.
func (c *Objects) Offline() *Objects { return &Objects{Known: c.Known} }

// Get reads one object.
func (c *Objects) Get(ctx context.Context, t kube.Target) (*object.Body, error) {
	return c.API.Get(ctx, t)
}

// List reads all objects of a resource, in one namespace or in all, page by page. It
// requests the next page when it is needed. The consumer may be slow, but after some
// minutes the rest of the list is newer than its start. hold holds memory for the objects of
// a page; nil means no limit.
func (c *Objects) List(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, hold func(page int, items []*object.Body) holding) iter.Seq2[*object.Body, error] {
	return func(yield func(*object.Body, error) bool) {
		number := 0
		for page, more := "", true; more; more = page != "" {
			number++
			items, next, err := c.page(ctx, info, namespace, o, page)
			if err == nil && hold != nil {
				if of := hold(number, items); !of.now(ctx) {
					items = nil // not kept while the handler waits
					if err = of.wait(ctx); err == nil {
						if items, next, err = c.page(ctx, info, namespace, o, page); err == nil && !hold(number, items).now(ctx) {
							err = of.refused()
						}
					}
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, b := range items {
				if !yield(b, nil) {
					return
				}
			}
			page = next
			if n := len(items); n > 0 && n < kube.PageSize { // large objects: see [kube.Client.Page]
				if o.Limit = n; sizeOf(items) < kube.LargePage/2 {
					o.Limit = min(2*n, kube.PageSize)
				}
			}
		}
	}
}

// Each calls each for all objects of a resource, in one namespace or in all, as soon as they
// arrive. Only one object is in memory at a time. A request is open meanwhile, so each must
// not wait for other requests. Its error ends the list and is returned.
func (c *Objects) Each(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, each func(*object.Body) error) error {
	_, err := c.API.List(ctx, info, namespace, o, each)
	return err
}

// page reads one page. If the server no longer has the snapshot of the list, it
// continues with the current state.
func (c *Objects) page(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, page string) ([]*object.Body, string, error) {
	items, next, err := c.API.Page(ctx, info, namespace, o, page)
	if status, _ := kube.Refused(err); page != "" && status.Continue != "" && apierrors.IsResourceExpired(err) {
		return c.API.Page(ctx, info, namespace, o, status.Continue)
	}
	return items, next, err
}
