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

// PageSize is how many objects are asked for at a time.
const PageSize = 500

// ListOptions narrow a list.
type ListOptions struct {
	Selector string // of labels, as kubectl takes it
	Fields   string // a selector of fields, where the resource has them
	Limit    int    // objects per page; 0 is PageSize, negative is all at once
	Max      int    // stop after as many objects; 0 is no limit

	// Skipped is told of items that cannot be read. Each is logged once, and the
	// others are listed. May be nil.
	Skipped func(object.Identity)
}

// List reads all objects of a resource, in one namespace or (if ns is empty)
// in all, and hands each to the function as soon as it has arrived. Only the
// object at hand is in memory. The function may be slow; its error ends the
// list and is returned.
//
// What comes back is the version of the list as a whole, from which changes
// can be followed. It is a consistent read: as new as when it was asked for.
//
// Requests for pages are retried like others, but once an object of a page was
// handed on, an error ends the list. A page asked for too late answers 410.
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

// readPage decodes one response while it arrives. Items that cannot be read are
// handed to skip, and the others are served.
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
				return errors.Join(err, s.Skip()) // null stands for none
			}
			return s.Array(item)
		}
		return s.Skip()
	})
	return meta, malformed(err)
}

// readItem reads the object that comes next. An [*object.UnreadableError] concerns
// only that object, if it has a name.
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

// typed fills in the type, which items of lists need not have.
func typed(id object.Identity, info kind.Info) object.Identity {
	if id.APIVersion == "" {
		id.APIVersion = info.APIVersion()
	}
	if id.Kind == "" {
		id.Kind = info.Kind
	}
	return id
}

// malformed tells bad JSON from a broken connection.
func malformed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err // the connection broke; what came before was fine
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
