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

// The types of watch events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
	Error    = "ERROR"
)

// Event is what a watch delivers.
type Event struct {
	Type string // one of the constants, or whatever the server makes up

	// Body is the object; of a bookmark only its version counts. It is nil for
	// errors and for unknown types.
	Body *object.Body

	// Unreadable marks an event about an object that cannot be read, which was
	// logged. The body has only its identity.
	Unreadable bool

	InitialEnd bool           // of a bookmark: all initial events were sent
	Status     *metav1.Status // of an error
}

// WatchOptions say what to watch.
type WatchOptions struct {
	ResourceVersion string // changes after this version
	Selector        string // of labels, as kubectl takes it
	Fields          string // a selector of fields, where the resource has them

	// SendInitialEvents asks for all existing objects first, as of at least
	// ResourceVersion or, if it is empty, as of now. Servers that cannot do it
	// answer 400 or 422.
	SendInitialEvents bool

	// ServerTimeout is after how long the server shall end the watch, in whole
	// seconds. 0 leaves it to the server (half an hour to an hour).
	ServerTimeout time.Duration

	// Probe takes the watch to the connections of ordinary requests.
	Probe bool
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

// Watch follows the changes of a resource in one namespace or (if ns is empty)
// in all. The watch ends with ctx, and must be closed. Nothing but refused
// credentials is retried: that is for the caller, who knows where to resume.
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
	if o.Probe {
		route = probed
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

// openWatches are those of a client.
type openWatches struct {
	mu         sync.Mutex
	generation int // of the credentials in use
	open       map[*Watch]struct{}
}

// add fails if other credentials took over while the watch was opened.
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

// replace ends the watches with former credentials.
func (o *openWatches) replace(generation int) {
	o.mu.Lock()
	former := o.open
	o.open, o.generation = nil, generation
	o.mu.Unlock()
	for w := range former {
		w.CloseWith(ErrReplaced)
	}
}

// ErrReplaced is what Next returns after [Client.Use]. Nothing has failed: the
// watch is to be resumed with the new credentials.
var ErrReplaced = errors.New("the watch was ended, as other credentials are used now")

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("the watch was closed")

// Close ends the watch, also while Next waits.
func (w *Watch) Close() { w.CloseWith(ErrClosed) }

// CloseWith ends the watch with an error of the caller's, which Next returns.
func (w *Watch) CloseWith(err error) {
	w.all.remove(w)
	w.response.cancel(err)
	// Bodies that did not come over the network may not know of the context.
	w.response.Body.Close()
	if w.closed != nil {
		w.closed()
	}
}

// Next waits for the next event. Any error is the end of the watch: io.EOF if
// the server ended it between two events, a [MalformedError] if it sent
// something that is no event.
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

// Torn tells an end of a watch that came within an event.
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
			var long *jsonvalue.TooLongError
			switch {
			case errors.As(err, &long):
				if !e.unread(object.Unreadable(long.Head, &long.LimitError), long.Head, w.skip) {
					return &MalformedError{fmt.Errorf("the object of an event %s: %w", e.Type, err)}
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
		return e, &MalformedError{errors.New("an event without a type")}
	case early != nil:
		err = w.read(&e, early)
	}
	if err == nil && e.known() && !e.complete() {
		err = &MalformedError{fmt.Errorf("an event %s without an object", e.Type)}
	}
	return e, err
}

// complete reports whether the event has what its type requires.
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

// read takes the object of an event of known type.
func (w *Watch) read(e *Event, value []byte) (err error) {
	switch e.Type {
	case Added, Modified, Deleted, Bookmark:
		e.Body, err = w.parse(value)
		if unreadable := (&object.UnreadableError{}); errors.As(err, &unreadable) && e.unread(unreadable, value, w.skip) {
			return nil
		}
	case Error:
		e.Status = new(metav1.Status)
		err = json.Unmarshal(value, e.Status)
	}
	if err != nil {
		return &MalformedError{fmt.Errorf("the object of an event %s: %w", e.Type, err)}
	}
	if e.Type == Bookmark {
		e.InitialEnd = e.Body.Annotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	return nil
}

// unread turns the event into one about an object that cannot be read. It returns
// false if the event does not name the object, or if the value spans lines. The API
// server sends each event as one line: a line break within a value means that the
// rest of an event is missing, and that the value may hide the events after it.
func (e *Event) unread(err *object.UnreadableError, value []byte, skip func(*object.UnreadableError)) bool {
	if err.Name == "" || e.Type == Bookmark || bytes.IndexByte(value, '\n') >= 0 {
		return false
	}
	skip(err)
	e.Body, e.Unreadable = err.Stub(), true
	return true
}

// eventType spares a string per event.
func eventType(quoted []byte) string {
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
	return strings.Trim(string(quoted), `"`)
}
