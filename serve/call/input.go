package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/queue"
)

// Limits of the inputs that exist at the same time, in bytes of JSON. Encoding takes about twice
// as much memory.
const (
	allInputs = 16 << 20
	// oneTenant is the limit for a namespace, or for a client that sends reviews. One without
	// any input never waits.
	oneTenant = allInputs - allInputs/4
	// smallInput is the size up to which inputs do not count.
	smallInput = 64 << 10
	// inputPatience is the time after which an input is made although there is no room. A
	// program that does not read its input must not stop the calls of others.
	inputPatience = 10 * time.Second
)

// NewInputs returns the memory for the inputs of several callers; see [Options].
func NewInputs() *queue.Budget {
	return &queue.Budget{Size: allInputs, Most: oneTenant, Patience: inputPatience}
}

// Encode returns the JSON of a value, and a newline. Unlike [json.Marshal], it does not write six
// bytes for each <, > and &: a tenant could use them to multiply the size of inputs.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// input waits for memory and encodes v, which is the input of the request or includes it. The
// caller must call release when it no longer needs the text.
func (o *Options) input(ctx context.Context, r *Request, v any) (text []byte, release func(), err error) {
	cost, group := r.Input.size(), "namespace "+r.Namespace
	if r.Input.Review != nil {
		group = "client " + r.Input.Review.Client
	}
	if cost <= smallInput {
		cost = 0
	}
	release = o.Inputs.Acquire(cost, group, ctx.Done(), nil)
	if ctx.Err() != nil {
		release()
		return nil, nil, context.Cause(ctx)
	}
	if text, err = Encode(v); err != nil {
		release()
		return nil, nil, fmt.Errorf("encode the input: %w", err)
	}
	return text, release, nil
}

// size returns about the number of bytes of the JSON.
func (i *Input) size() int {
	n := sizeOf(i.Object) + sizeOf(i.Old) + len(i.Memo)
	for _, change := range i.Diff {
		n += len(change.Op) + sizeOf(change.Path) + sizeOf(change.Old) + sizeOf(change.New)
	}
	for kind, children := range i.Children {
		n += len(kind) + sizeOf(children)
	}
	if i.Review != nil {
		n += sizeOf(i.Review.User)
	}
	return n
}

func sizeOf(v any) (n int) {
	switch x := v.(type) {
	case map[string]any:
		for key, item := range x {
			n += sizeOf(key) + sizeOf(item) + 2
		}
	case []any:
		for _, item := range x {
			n += sizeOf(item) + 1
		}
	case []string:
		for _, item := range x {
			n += sizeOf(item) + 1
		}
	case string:
		n = len(x) + 2
		for i := range len(x) {
			switch c := x[i]; {
			case c < ' ':
				n += 5
			case c == '"', c == '\\':
				n++
			}
		}
	default:
		n = 8
	}
	return n
}
