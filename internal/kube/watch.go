package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// EventType is the type of an event, from the watch of the API server to the turn of
// the object. Watches may deliver types without a constant.
type EventType string

// The types of events.
const (
	Added    EventType = "ADDED"    // the object was created
	Modified EventType = "MODIFIED" // it was changed
	Deleted  EventType = "DELETED"  // it no longer exists
	Bookmark EventType = "BOOKMARK"
	Error    EventType = "ERROR"

	// Listed is the type of list items. Watches never deliver it.
	Listed EventType = ""
)

// String returns the type for logs.
func (t EventType) String() string {
	if t == Listed {
		return "LISTED"
	}
	return string(t)
}

// Event is a watch event.
type Event struct {
	Type EventType

	// Body is the object. Bookmarks have only a resource version. Errors and unknown
	// types have none (nil).
	Body *object.Body

	// Unreadable marks an event about an object that cannot be read, which was logged.
	// Body has only its identity.
	Unreadable bool

	InitialEnd bool           // bookmarks: all initial events were sent
	Status     *metav1.Status // errors only
}

// WatchOptions select the events of a watch.
type WatchOptions struct {
	ResourceVersion string // start after this version
	Selector        string // label selector, in kubectl's syntax
	Fields          string // field selector, where the resource supports it

	// SendInitialEvents requests all existing objects first, at ResourceVersion or
	// newer; at the latest version if it is empty. Servers without support return 400
	// or 422.
	SendInitialEvents bool

	// ServerTimeout is the time after which the server ends the watch, in whole
	// seconds. 0 means the server's default (30 to 60 minutes).
	ServerTimeout time.Duration

	// Probe opens the watch on a connection that only probes share.
	Probe bool

	// Share opens the watch on a connection that it may share with other watches, up to
	// the server's limit of concurrent streams. Otherwise it has its own connection.
	// Servers without HTTP/2 do not support shared connections.
	Share bool
}

// Watch is an open stream of events. Only Close may be called concurrently
// with other methods.
type Watch struct {
	events   *jsonvalue.Stream
	skip     func(*object.UnreadableError)
	parse    func([]byte) (*object.Body, error)
	response *response
	all      *openWatches
	closed   func() // logs the end; may be nil
}

// Watch watches a resource in one namespace, or in all if ns is empty. The watch ends
// with ctx and must be closed. Only rejected credentials are retried; the caller knows
// where to resume.
func (c *Client) Watch(ctx context.Context, info kind.Info, ns string, o WatchOptions) (*Watch, error) {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}}
	if o.ResourceVersion != "" {
		query.Set("resourceVersion", o.ResourceVersion)
	}
	if o.SendInitialEvents {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	if o.Selector != "" {
		query.Set("labelSelector", o.Selector)
	}
	if o.Fields != "" {
		query.Set("fieldSelector", o.Fields)
	}
	if s := int(o.ServerTimeout.Seconds()); s > 0 {
		query.Set("timeoutSeconds", strconv.Itoa(s))
	}
	route := followed
	switch {
	case o.Probe:
		route = probed
	case o.Share:
		route = joint
	}
	w := &Watch{all: &c.shared.watches, skip: c.skipper(info, nil), parse: c.parse}
	r := &call{verb: "watch", method: http.MethodGet, target: Target{Info: info, Namespace: ns}, query: query, repeatable: true, route: route}
	r.read = func(a *response) error {
		a.kept = true
		w.response = a
		if c.logsTraffic(ctx) {
			w.closed = c.newTraffic(r.method, r.path).closing()
		}
		w.events = jsonvalue.NewStream(a.Body, jsonvalue.MaxObject)
		return nil
	}
	if err := c.WithBackoffs(nil).do(ctx, r); err != nil {
		return nil, err
	}
	if !w.all.add(w) {
		w.CloseWith(ErrReplaced)
	}
	return w, nil
}

// openWatches are the open watches of a client.
type openWatches struct {
	mu         sync.Mutex
	generation int // of the credentials in use
	open       map[*Watch]struct{}
}

// add returns false if the credentials were replaced while the watch was opened.
func (o *openWatches) add(w *Watch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.response.conns.generation != o.generation {
		return false
	}
	if o.open == nil {
		o.open = map[*Watch]struct{}{}
	}
	o.open[w] = struct{}{}
	return true
}

func (o *openWatches) remove(w *Watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, w)
}

// replace ends all watches that use the previous credentials.
func (o *openWatches) replace(generation int) {
	o.mu.Lock()
	former := o.open
	o.open, o.generation = nil, generation
	o.mu.Unlock()
	for w := range former {
		w.CloseWith(ErrReplaced)
	}
}

// ErrReplaced is returned by Next after [Client.Use]. It is not a failure: resume the
// watch with the new credentials.
var ErrReplaced = errors.New("the watch was closed because the credentials were replaced")

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the watch was closed")

// Close ends the watch, even while Next waits.
func (w *Watch) Close() { w.CloseWith(ErrClosed) }

// CloseWith ends the watch with an error, which Next returns.
func (w *Watch) CloseWith(err error) {
	w.all.remove(w)
	w.response.cancel(err)
	// Bodies of custom transports may ignore the context.
	w.response.Body.Close()
	if w.closed != nil {
		w.closed()
	}
}

// Next waits for the next event. Every error ends the watch: io.EOF if the server
// closed it between two events, a [MalformedError] if it sent an invalid event.
func (w *Watch) Next() (Event, error) {
	e, err := w.next()
	if err == nil {
		return e, nil
	}
	if cause := w.response.cause(); cause != nil {
		return Event{}, cause
	}
	if err = malformed(err); errors.Is(err, io.ErrUnexpectedEOF) && w.events.Inside() {
		err = tornError{err}
	}
	return Event{}, err
}

// Torn reports whether the watch ended in the middle of an event.
func Torn(err error) bool {
	var torn tornError
	return errors.As(err, &torn)
}

type tornError struct{ error }

func (e tornError) Unwrap() error { return e.error }

func (w *Watch) next() (e Event, err error) {
	var early []byte // an object that came before its type
	err = w.events.Object(func(name []byte) error {
		switch string(name) {
		case `"type"`:
			value, err := w.events.Value()
			if err != nil {
				return err
			}
			e.Type = eventType(value)
			return nil
		case `"object"`:
			// The value is valid only until the next one is read.
			value, err := w.events.Value()
			long, tooLong := errors.AsType[*jsonvalue.TooLongError](err)
			switch {
			case tooLong:
				if !e.unread(object.Unreadable(long.Head, &long.LimitError), long.Head, w.skip) {
					return &MalformedError{fmt.Errorf("object of %s event: %w", string(e.Type), err)}
				}
				return nil
			case err != nil:
				return err
			case e.Type == "":
				early = append([]byte{}, value...)
				return nil
			}
			return w.read(&e, value)
		}
		return w.events.Skip()
	})
	switch {
	case err != nil:
		return e, err
	case e.Type == "":
		return e, &MalformedError{errors.New("event without a type")}
	case early != nil:
		err = w.read(&e, early)
	}
	if err == nil && e.known() && !e.complete() {
		err = &MalformedError{fmt.Errorf("%s event without an object", e.Type)}
	}
	return e, err
}

// complete reports whether the event has everything that its type requires.
func (e *Event) complete() bool {
	switch e.Type {
	case Error:
		return e.Status != nil
	case Bookmark:
		return e.Body != nil && !e.Unreadable
	}
	return e.Body != nil
}

func (e *Event) known() bool {
	switch e.Type {
	case Added, Modified, Deleted, Bookmark, Error:
		return true
	}
	return false
}

// read parses the object of an event of known type.
func (w *Watch) read(e *Event, value []byte) (err error) {
	switch e.Type {
	case Added, Modified, Deleted, Bookmark:
		e.Body, err = w.parse(value)
		if unreadable, ok := errors.AsType[*object.UnreadableError](err); ok && e.unread(unreadable, value, w.skip) {
			return nil
		}
	case Error:
		e.Status = new(metav1.Status)
		err = json.Unmarshal(value, e.Status)
	}
	if err != nil {
		return &MalformedError{fmt.Errorf("object of %s event: %w", e.Type, err)}
	}
	if e.Type == Bookmark {
		e.InitialEnd = e.Body.Annotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	return nil
}

// unread marks the event as one about an object that cannot be read. It returns false
// if the object is unknown, or if the value spans lines. The API server sends each
// event as one line: a line break within a value means that the rest of an event is
// missing, and that the value may hide the events after it.
func (e *Event) unread(err *object.UnreadableError, value []byte, skip func(*object.UnreadableError)) bool {
	if err.Name == "" || e.Type == Bookmark || bytes.IndexByte(value, '\n') >= 0 {
		return false
	}
	skip(err)
	e.Body, e.Unreadable = err.Stub(), true
	return true
}

// eventType avoids allocating a string per event.
func eventType(quoted []byte) EventType {
	switch string(quoted) {
	case `"ADDED"`:
		return Added
	case `"MODIFIED"`:
		return Modified
	case `"DELETED"`:
		return Deleted
	case `"BOOKMARK"`:
		return Bookmark
	}
	return EventType(strings.Trim(string(quoted), `"`))
}
