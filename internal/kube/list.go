package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// PageSize is the default number of objects per page of a list.
const PageSize = 500

// ListOptions narrow a list.
type ListOptions struct {
	Selector string // label selector, in kubectl's syntax
	Fields   string // field selector, where the resource supports it
	Limit    int    // objects per page; 0 means PageSize, negative means no paging
	Max      int    // stop after this many objects; 0 means no limit

	// Skipped is called for items that cannot be read. Each of them is logged once, and
	// the other items are listed. May be nil.
	Skipped func(object.Identity)
}

// List reads all objects of a resource in one namespace, or in all if ns is empty. It
// calls each for every object as soon as it has arrived. Only one object is in memory
// at a time. The callback may be slow. Its error ends the list and is returned.
//
// List returns the resource version of the list, from which a watch can start. It is a
// consistent read.
//
// Requests for pages are retried, but once an object of a page was delivered, an error
// ends the list. A page that is requested too late fails with 410.
func (c *Client) List(ctx context.Context, info kind.Info, ns string, o ListOptions, each func(*object.Body) error) (resourceVersion string, err error) {
	target := Target{Info: info, Namespace: ns}
	query := o.query()
	seen := 0
	count := func(b *object.Body) error {
		seen++
		return each(b)
	}
	for {
		var meta listMeta
		err := c.do(ctx, &call{verb: "list", method: http.MethodGet, target: target, query: query, repeatable: true, route: streamed,
			read: func(a *response) (err error) {
				before := seen
				meta, err = c.readPage(a.Body, info, count, c.skipper(info, o.Skipped))
				a.used = seen > before
				return err
			}})
		if err != nil {
			return "", err
		}
		if meta.ResourceVersion == "" {
			return "", fmt.Errorf("list %s: %w", target, &MalformedError{errors.New("the list has no resourceVersion")})
		}
		if meta.Continue == "" || o.Max > 0 && seen >= o.Max {
			return meta.ResourceVersion, nil
		}
		query.Set("continue", meta.Continue)
	}
}

func (o ListOptions) query() url.Values {
	query := url.Values{}
	if o.Selector != "" {
		query.Set("labelSelector", o.Selector)
	}
	if o.Fields != "" {
		query.Set("fieldSelector", o.Fields)
	}
	limit := o.Limit
	if limit == 0 {
		limit = PageSize
	}
	if o.Max > 0 && (limit < 0 || o.Max < limit) {
		limit = o.Max
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query
}

type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// readPage decodes one response while it arrives. It passes items that cannot be read
// to skip, and the others to each.
func (c *Client) readPage(body io.Reader, info kind.Info, each func(*object.Body) error, skip func(*object.UnreadableError)) (meta listMeta, err error) {
	s := jsonvalue.NewStream(body, jsonvalue.MaxObject)
	item := func() error {
		b, err := c.readItem(s)
		if unreadable := (&object.UnreadableError{}); errors.As(err, &unreadable) && unreadable.Name != "" {
			unreadable.Identity = typed(unreadable.Identity, info)
			skip(unreadable)
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(b.WithType(info.APIVersion(), info.Kind)); err != nil {
			return callbackError{err}
		}
		return nil
	}
	err = s.Object(func(name []byte) error {
		switch string(name) {
		case `"metadata"`:
			value, err := s.Value()
			if err != nil {
				return err
			}
			if err := json.Unmarshal(value, &meta); err != nil {
				return &MalformedError{err}
			}
			return nil
		case `"items"`:
			if c, err := s.Peek(); err != nil || c != '[' {
				return errors.Join(err, s.Skip()) // null means empty
			}
			return s.Array(item)
		}
		return s.Skip()
	})
	return meta, malformed(err)
}

// readItem reads the next object. An [*object.UnreadableError] with a name concerns
// only that object.
func (c *Client) readItem(s *jsonvalue.Stream) (*object.Body, error) {
	value, err := s.Value()
	var long *jsonvalue.TooLongError
	if errors.As(err, &long) {
		return nil, object.Unreadable(long.Head, &long.LimitError)
	}
	if err != nil {
		return nil, err
	}
	return c.parse(value)
}

// typed fills in the type, which list items may lack.
func typed(id object.Identity, info kind.Info) object.Identity {
	if id.APIVersion == "" {
		id.APIVersion = info.APIVersion()
	}
	if id.Kind == "" {
		id.Kind = info.Kind
	}
	return id
}

// malformed wraps errors about bad JSON in a MalformedError. Connection errors stay as
// they are.
func malformed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err // the connection broke; the data before was valid
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	var known *MalformedError
	if errors.As(err, &known) {
		return err
	}
	var syntax *jsonvalue.SyntaxError
	var unreadable *object.UnreadableError
	var long *jsonvalue.TooLongError
	if errors.As(err, &syntax) || errors.As(err, &unreadable) || errors.As(err, &long) {
		return &MalformedError{err}
	}
	return err
}
