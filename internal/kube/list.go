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

	"github.com/go-json-experiment/json/jsontext"

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
				meta, err = readPage(a.Body, info, count)
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

// readPage decodes one answer while it arrives.
func readPage(body io.Reader, info kind.Info, each func(*object.Body) error) (meta listMeta, err error) {
	dec := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true))
	err = eachField(dec, func(name jsontext.Value) error {
		switch string(name) {
		case `"metadata"`:
			value, err := dec.ReadValue()
			if err != nil {
				return err
			}
			if err := json.Unmarshal(value, &meta); err != nil {
				return &MalformedError{err}
			}
			return nil
		case `"items"`:
			return eachItem(dec, func(value jsontext.Value) error {
				b, err := object.Parse(value)
				if err != nil {
					return &MalformedError{err}
				}
				if err := each(b.WithType(info.APIVersion(), info.Kind)); err != nil {
					return callbackError{err}
				}
				return nil
			})
		}
		return dec.SkipValue()
	})
	return meta, malformed(err)
}

// eachField calls fn for every field of the object that comes next, with its
// name in quotes; fn consumes the value, with which the name becomes invalid.
func eachField(dec *jsontext.Decoder, fn func(name jsontext.Value) error) error {
	start, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if start.Kind() != '{' {
		return &MalformedError{errors.New("not a JSON object")}
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := fn(name); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

func eachItem(dec *jsontext.Decoder, fn func(jsontext.Value) error) error {
	if dec.PeekKind() != '[' {
		return dec.SkipValue() // null stands for none
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := fn(value); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
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
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return &MalformedError{err}
	}
	return err
}
