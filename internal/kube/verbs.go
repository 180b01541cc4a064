package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/object"
)

// Param is a query parameter of a write.
type Param struct{ Name, Value string }

// FieldManager sets the field manager of a write.
func FieldManager(name string) Param { return Param{"fieldManager", name} }

// Force makes a server-side apply take over fields of other managers.
func Force() Param { return Param{"force", "true"} }

// DryRun makes the server validate a write without storing it.
func DryRun() Param { return Param{"dryRun", metav1.DryRunAll} }

// Get reads one object. It is retried if the response is lost.
func (c *Client) Get(ctx context.Context, t Target) (*object.Body, error) {
	return c.object(ctx, &call{verb: "get", method: http.MethodGet, target: t, repeatable: true})
}

// Managers reads the field managers of one object. Other reads drop them by default;
// see [Options].
func (c *Client) Managers(ctx context.Context, t Target) (managers []metav1.ManagedFieldsEntry, err error) {
	err = c.do(ctx, &call{verb: "get", method: http.MethodGet, target: t, repeatable: true, read: func(a *response) error {
		return c.slurp(a, func(raw []byte) error {
			var partial struct {
				Metadata struct {
					ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
				} `json:"metadata"`
			}
			if err := json.Unmarshal(raw, &partial); err != nil {
				return &MalformedError{err}
			}
			managers = partial.Metadata.ManagedFields
			return nil
		})
	}})
	return managers, err
}

// Create creates an object in the collection t, or posts to a subresource. A lost
// response is an [UnknownOutcomeError].
func (c *Client) Create(ctx context.Context, t Target, body []byte, params ...Param) (*object.Body, error) {
	return c.object(ctx, &call{verb: "create", method: http.MethodPost, target: t,
		contentType: "application/json", body: body, query: query(params)})
}

// Patch changes one object and returns the result. A lost response is an
// [UnknownOutcomeError]. Failures that cannot have been applied are retried.
func (c *Client) Patch(ctx context.Context, t Target, how types.PatchType, body []byte, params ...Param) (*object.Body, error) {
	return c.object(ctx, patch(ctx, t, how, body, params))
}

// PatchBriefly is [Client.Patch] but returns only the new resource version, which is
// much cheaper for both sides.
func (c *Client) PatchBriefly(ctx context.Context, t Target, how types.PatchType, body []byte, params ...Param) (resourceVersion string, err error) {
	r := patch(ctx, t, how, body, slices.Concat(params, []Param{{"includeObject", "None"}}))
	r.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	// The resource version of a Table is in the same place as that of an object.
	r.read = func(a *response) error {
		return c.slurp(a, func(raw []byte) (err error) {
			if resourceVersion, err = object.VersionOf(raw); err != nil {
				return &MalformedError{fmt.Errorf("read the resource version: %w", err)}
			}
			return nil
		})
	}
	if err := c.do(ctx, r); err != nil {
		return "", err
	}
	if resourceVersion == "" && r.confirmed != nil {
		return r.confirmed.ResourceVersion, nil
	}
	return resourceVersion, nil
}

func patch(ctx context.Context, t Target, how types.PatchType, body []byte, params []Param) *call {
	recognized, _ := ctx.Value(confirmingKey{}).(func(*object.Body) bool)
	return &call{verb: "patch", method: http.MethodPatch, target: t,
		contentType: string(how), body: body, query: query(params), recognized: recognized}
}

// DeleteOptions restrict a deletion. The zero value deletes any object with the name,
// with the default propagation of its kind.
type DeleteOptions struct {
	UID             string // delete only the object with this uid
	ResourceVersion string // delete only this version
	Propagation     metav1.DeletionPropagation
}

// Delete deletes one object. With a uid it is retried if the response was lost, so
// not-found may mean that an earlier attempt succeeded. Without a uid, a retry might
// delete another object of the same name; a lost response is then an
// [UnknownOutcomeError].
func (c *Client) Delete(ctx context.Context, t Target, o DeleteOptions) error {
	options := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if o.UID != "" || o.ResourceVersion != "" {
		options.Preconditions = &metav1.Preconditions{}
	}
	if o.UID != "" {
		options.Preconditions.UID = (*types.UID)(&o.UID)
	}
	if o.ResourceVersion != "" {
		options.Preconditions.ResourceVersion = &o.ResourceVersion
	}
	if o.Propagation != "" {
		options.PropagationPolicy = &o.Propagation
	}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	return c.do(ctx, &call{verb: "delete", method: http.MethodDelete, target: t,
		contentType: "application/json", body: body, repeatable: o.UID != "",
		// The response is the object or a status; both are ignored.
		read: func(a *response) error { return c.slurp(a, func([]byte) error { return nil }) }})
}

// dryRun returns query parameters with those of [DryRun]. q may be nil.
func dryRun(q url.Values) url.Values {
	with := url.Values{}
	maps.Copy(with, q)
	with.Set(DryRun().Name, DryRun().Value)
	return with
}

func query(params []Param) url.Values {
	q := url.Values{}
	for _, p := range params {
		q.Set(p.Name, p.Value)
	}
	return q
}

// object sends a request whose response is an object.
func (c *Client) object(ctx context.Context, r *call) (body *object.Body, err error) {
	r.read = c.readObject(&body)
	if err := c.do(ctx, r); err != nil {
		return nil, err
	}
	if body == nil {
		body = r.confirmed
	}
	return body, nil
}

// readObject returns a reader for a response that is an object.
func (c *Client) readObject(into **object.Body) func(*response) error {
	return func(a *response) error {
		return c.slurp(a, func(raw []byte) error {
			body, err := c.parse(raw)
			if err != nil {
				return &MalformedError{err}
			}
			*into = body
			return nil
		})
	}
}

// parse reads an object. It keeps managedFields if [Options.ManagedFields] is set.
func (c *Client) parse(raw []byte) (*object.Body, error) {
	if c.opts.ManagedFields {
		return object.ParseWhole(raw)
	}
	return object.Parse(raw)
}

// slurp reads a response into a pooled buffer, which use must not keep.
func (c *Client) slurp(a *response, use func([]byte) error) error {
	buf, _ := c.shared.buffers.Get().(*bytes.Buffer)
	if buf == nil {
		buf = new(bytes.Buffer)
	}
	defer func() {
		if buf.Cap() <= maxKeptBuffer {
			buf.Reset()
			c.shared.buffers.Put(buf)
		}
	}()
	switch _, err := io.CopyN(buf, a.Body, largeResponse); {
	case errors.Is(err, io.EOF):
		return use(buf.Bytes())
	case err != nil:
		return err
	}
	ctx := a.Request.Context()
	place, err := c.shared.large.acquire(ctx, tenantOf(ctx, ""))
	if err != nil {
		return err
	}
	defer c.shared.large.release(place, nothing)
	if rest := a.ContentLength - largeResponse; rest > 0 && rest < mostExpected {
		buf.Grow(int(rest) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(a.Body); err != nil {
		return err
	}
	return use(buf.Bytes())
}

const (
	maxKeptBuffer = 1 << 20
	// largeResponse is the size of a response, in bytes, from which on it waits for its place: its
	// buffers take several times its size, and one object may be read by many handlers.
	largeResponse = 256 << 10
	// maxLarge limits the large responses that are read concurrently.
	maxLarge = 8
	// mostExpected is the size, in bytes, above which the announced size of a response is not
	// trusted.
	mostExpected = 8 << 20
)
