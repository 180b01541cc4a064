package kube

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/object"
)

// confirmAfter is how long a write may be without a response before the object is
// read, and the time between such reads.
const confirmAfter = 5 * time.Second

// confirmingKey is where a context has what recognizes the effect of a write.
type confirmingKey struct{}

// Confirming returns a context for a patch whose effect can be recognized. If the
// patch gets no response for 5 s, the object is read on another connection, and
// again every 5 s while the patch stays open. If the effect is there, the object as
// it was read is the response. So is a 404.
func Confirming(ctx context.Context, recognized func(*object.Body) bool) context.Context {
	return context.WithValue(ctx, confirmingKey{}, recognized)
}

// errConfirmed ends a write that is known to have been made.
var errConfirmed = errors.New("the write was confirmed by reading the object")

// confirmation finds out whether a write without a response was made.
type confirmation struct {
	timer *time.Timer
	done  chan struct{} // closed when the timer's function has ended
	body  *object.Body
	err   error
}

// confirm watches over one attempt of a write; nil if its effect cannot be
// recognized. The attempt is ended as soon as the effect is known, or with ctx.
func (c *Client) confirm(ctx context.Context, conns *conns, r *call, end context.CancelCauseFunc) *confirmation {
	if r.recognized == nil {
		return nil
	}
	k := &confirmation{done: make(chan struct{})}
	k.timer = time.AfterFunc(confirmAfter, func() {
		defer close(k.done)
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
			if sleep(ctx, confirmAfter, nil) != nil {
				return
			}
		}
	})
	return k
}

// stop returns the outcome of the attempt: the given one, or that which was read.
// The context of the attempt must have ended.
func (k *confirmation) stop(o outcome) outcome {
	if k == nil || k.timer.Stop() {
		return o
	}
	<-k.done
	switch {
	case o.err == nil, k.body == nil && k.err == nil:
		return o
	case k.err != nil:
		return outcome{err: k.err, code: http.StatusNotFound, sent: true, began: o.began, lost: true}
	}
	return outcome{code: http.StatusOK, sent: true, began: o.began, lost: true}
}

// readAside reads an object on another connection than other requests use, and
// without waiting for a slot: the slots may be taken by writes that wait for this.
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
