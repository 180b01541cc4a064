// Package objects reads and writes objects of any kind on behalf of handlers.
// Writes whose answers got lost are settled by reading.
package objects

import (
	"context"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// API is the part of the cluster's API that is needed.
type API interface {
	Discover(ctx context.Context, groups ...string) (kube.Discovery, error)
	Get(context.Context, kube.Target) (*object.Body, error)
	Page(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, page string) ([]*object.Body, string, error)
	Create(context.Context, kube.Target, []byte, ...kube.Param) (*object.Body, error)
	Patch(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (*object.Body, error)
	Delete(context.Context, kube.Target, kube.DeleteOptions) error
}

// Client is the cluster as handlers use it. It is safe for concurrent use.
type Client struct {
	// API is the cluster; nil to look up only what is known of it already.
	API API
	// Known are the resources that the cluster has, as far as is known.
	Known func() []kind.Info
}

// Offline only looks up what is known already.
func (c *Client) Offline() *Client { return &Client{Known: c.Known} }

// Get reads one object.
func (c *Client) Get(ctx context.Context, t kube.Target) (*object.Body, error) {
	return c.API.Get(ctx, t)
}

// List reads all objects of a resource, in one namespace or in all, page by
// page: the next one is asked for when it is needed. The consumer may take any
// time; after some minutes the rest of the list is newer than its beginning.
func (c *Client) List(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions) iter.Seq2[*object.Body, error] {
	return func(yield func(*object.Body, error) bool) {
		for page, more := "", true; more; more = page != "" {
			items, next, err := c.page(ctx, info, namespace, o, page)
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
		}
	}
}

// page reads one page. If the server does not remember the state of the list
// anymore, it goes on in the present one.
func (c *Client) page(ctx context.Context, info kind.Info, namespace string, o kube.ListOptions, page string) ([]*object.Body, string, error) {
	items, next, err := c.API.Page(ctx, info, namespace, o, page)
	if status, _ := kube.Refused(err); page != "" && status.Continue != "" && apierrors.IsResourceExpired(err) {
		return c.API.Page(ctx, info, namespace, o, status.Continue)
	}
	return items, next, err
}
