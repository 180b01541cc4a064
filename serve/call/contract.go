// Package call calls handlers that are programs or HTTP hooks: one JSON document in, one
// out. The time, the output and the processes of each call are limited.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Version is the version of the contract.
const Version = 1

// Input is the document that a handler gets.
type Input struct {
	V        int                       `json:"v"`
	Handler  string                    `json:"handler"`
	Reason   string                    `json:"reason,omitempty"` // of a change; otherwise the type of handler
	Event    string                    `json:"event,omitempty"`  // the type of a watch event
	Key      string                    `json:"key,omitempty"`    // idempotency key
	Retry    int                       `json:"retry"`
	Started  *time.Time                `json:"started,omitempty"`
	Field    []string                  `json:"field,omitempty"`
	Object   map[string]any            `json:"object,omitempty"`
	Old      map[string]any            `json:"old,omitempty"`
	Diff     Changes                   `json:"diff,omitempty"`
	Children map[string]map[string]any `json:"children,omitempty"`
	Review   *Review                   `json:"review,omitempty"`
	Memo     json.RawMessage           `json:"memo,omitempty"`
}

// Review describes an admission request.
type Review struct {
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	User        any    `json:"user"`
	DryRun      bool   `json:"dryRun"`

	// Client is the host that sent the review. Handlers do not see it.
	Client string `json:"-"`
}

// Output is the document that a handler returns. All keys are optional.
type Output struct {
	Patch       map[string]any     `json:"patch"`
	Status      map[string]any     `json:"status"`
	Labels      map[string]*string `json:"labels"`
	Annotations map[string]*string `json:"annotations"`
	Result      any                `json:"result"`
	Children    []map[string]any   `json:"children"`
	Apply       []map[string]any   `json:"apply"`
	Delete      []map[string]any   `json:"delete"`
	Events      []Event            `json:"events"`
	Warnings    []string           `json:"warnings"`
	Memo        json.RawMessage    `json:"memo"`

	Wait      *Delay  `json:"wait"`
	Retry     *Delay  `json:"retry"`
	Permanent *string `json:"permanent"`
	Deny      *string `json:"deny"`
}

// Event is a Kubernetes event about the object.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Delay is the outcome "call again later".
type Delay struct {
	After   Duration `json:"after"`
	Message string   `json:"message"`
	Error   string   `json:"error"`
}

// Text returns why the handler asks for another call.
func (d *Delay) Text() string {
	if d.Error != "" {
		return d.Error
	}
	return d.Message
}

// Duration is a number of seconds, or a text such as "1m30s".
type Duration time.Duration

// UnmarshalJSON parses both forms.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var seconds float64
	if json.Unmarshal(text, &seconds) == nil && seconds >= 0 && seconds < 1e9 {
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s is not a duration", text)
	}
	parsed, err := time.ParseDuration(s)
	if err != nil || parsed < 0 {
		return fmt.Errorf("%q is not a duration such as 30s", s)
	}
	*d = Duration(parsed)
	return nil
}

// cut shortens a text.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Changes is a diff. Its JSON has the form of Kopf: [operation, path, old, new].
type Changes diff.Diff

// Tuples returns the changes in the form of Kopf. They take several times the memory of the diff.
func (c Changes) Tuples() [][]any {
	tuples := make([][]any, len(c))
	for i := range c {
		tuples[i] = c.tuple(i)
	}
	return tuples
}

func (c Changes) tuple(i int) []any {
	path := c[i].Path
	if path == nil {
		path = []string{}
	}
	return []any{string(c[i].Op), path, c[i].Old, c[i].New}
}

// MarshalJSON encodes one change after the other.
func (c Changes) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i := range c {
		if i > 0 {
			b = append(b, ',')
		}
		tuple, err := jsonvalue.Encode(c.tuple(i))
		if err != nil {
			return nil, err
		}
		b = append(b, tuple...)
	}
	return append(b, ']'), nil
}

// Request is one call.
type Request struct {
	Input           Input
	Namespace, Name string
	Log             *slog.Logger
	// Kubeconfig writes a kubeconfig for the program, and returns its path and a function
	// that removes it. nil means that the cluster is not reachable.
	Kubeconfig func(context.Context) (path string, remove func(), err error)
	// Token returns the bearer token for an HTTP hook. nil means none.
	Token func(context.Context) (string, error)
	// NoWait means that the call fails if a kept program cannot be started. By default, a call
	// for an object waits: a broken program must not use up the attempts of its handler.
	NoWait bool
}

// fails reports whether the call fails if the program cannot be started.
func (r *Request) fails() bool { return r.NoWait || r.Input.Object == nil && r.Input.Review == nil }

// Caller calls a handler.
type Caller interface {
	// Call sends the document and returns the output. An error is a [*Error] if the program or
	// hook has decided about retries. Call returns soon after ctx is done.
	Call(ctx context.Context, r *Request) (Output, error)
	// Close ends programs and connections that are kept between calls.
	Close()
}

// Error is a failed call for which the program or hook has decided about retries.
type Error struct {
	Permanent bool
	After     *time.Duration // nil means the backoff of the handler. It is for temporary errors.
	Err       error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Limits of a call.
const (
	DefaultOutput      = 4 << 20
	DefaultExecTimeout = 5 * time.Minute
	DefaultHTTPTimeout = 30 * time.Second
	killDelay          = 5 * time.Second // between SIGTERM and SIGKILL
)

var errCallTimeout = errors.New("the time limit of the call is over")

// limited returns a context with the time limit of one call.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errCallTimeout)
}
