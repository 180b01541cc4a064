package kube

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/object"
)

// confirmAfter is the time without a response after which the object is read, and the
// interval of further reads.
const confirmAfter = 5 * time.Second

// confirmingKey is the context key of the function that recognizes the effect of a write.
type confirmingKey struct{}

// Confirming returns a context for a patch whose effect can be recognized. If the patch
// gets no response for 5 seconds, the object is read on another connection, and again
// every 5 seconds while the patch is pending. As soon as recognized returns true, the
// object that was read becomes the response of the patch. So does a 404.
func Confirming(ctx context.Context, recognized func(*object.Body) bool) context.Context {
	return context.WithValue(ctx, confirmingKey{}, recognized)
}

// errConfirmed cancels a write that is known to have been applied.
var errConfirmed = errors.New("the write was confirmed by reading the object")

// confirmation checks whether a write without a response was applied.
type confirmation struct {
	timer *time.Timer
	read  sync.WaitGroup // until the timer's function has returned, or was stopped
	body  *object.Body
	err   error
}

// confirm starts the confirmation of one attempt of a write. It cancels the attempt as
// soon as the effect of the write is found. It stops when ctx ends. Without a way to
// recognize the effect, it returns nil.
func (c *Client) confirm(ctx context.Context, conns *conns, r *call, end context.CancelCauseFunc) *confirmation {
	if r.recognized == nil {
		return nil
	}
	k := &confirmation{}
	k.read.Add(1)
	k.timer = time.AfterFunc(confirmAfter, func() {
		defer k.read.Done()
		for {
			body, err := c.readAside(ctx, conns, r.target)
			if ctx.Err() != nil {
				return
			}
			if apierrors.IsNotFound(err) || err == nil && r.recognized(body) {
				k.body, k.err = body, err
				end(errConfirmed)
				return
			}
			if backoff.Sleep(ctx, confirmAfter) != nil {
				return
			}
		}
	})
	return k
}

// stop returns o, or the outcome that was found by reading the object. The context of
// the attempt must have ended.
func (k *confirmation) stop(o outcome) outcome {
	if k == nil || k.timer.Stop() {
		return o
	}
	k.read.Wait()
	switch {
	case o.err == nil, k.body == nil && k.err == nil:
		return o
	case k.err != nil:
		return outcome{err: k.err, code: http.StatusNotFound, sent: true, began: o.began, lost: true}
	}
	return outcome{code: http.StatusOK, sent: true, began: o.began, lost: true}
}

// readAside reads an object on a separate connection and without a slot: all slots may
// be taken by writes that wait for this read.
func (c *Client) readAside(ctx context.Context, conns *conns, t Target) (body *object.Body, err error) {
	t.Subresource = ""
	r := &call{verb: "get", method: http.MethodGet, target: t, repeatable: true, route: aside}
	if r.path, err = t.Path(); err != nil {
		return nil, err
	}
	r.read = c.readObject(&body)
	if o := c.attempt(ctx, conns, r); o.err != nil {
		return nil, o.err
	}
	return body, nil
}
