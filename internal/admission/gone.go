package admission

import (
	"context"
	"net/http"
	"sync/atomic"
)

// CodeGone is the code of a review whose client has canceled it, for metrics. No client gets it.
const CodeGone = 499

// errGone means that the client has canceled the review while a handler was running. The handler
// still has the capacity of the review.
var errGone error = &httpError{CodeGone, context.Canceled}

// held is the capacity that a review has taken.
type held []func()

func (h *held) add(release func()) { *h = append(*h, release) }

// release returns the capacity, the last part first.
func (h *held) release() {
	for i := len(*h) - 1; i >= 0; i-- {
		(*h)[i]()
	}
	*h = nil
}

// attend calls the handlers of a review. If the client cancels the review meanwhile, ok is false:
// the handlers continue, and their capacity is released when they have ended.
//
// HTTP/2 servers keep the place of a canceled request until it is answered. Handlers may ignore
// that their context was canceled, so a client that cancels again and again could have the server
// close the connection, with the reviews of others on it.
func (v *Reviewer) attend(client context.Context, capacity *held, handle func() verdict) (result verdict, ok bool) {
	var left atomic.Bool // one of both has left: the caller, or the handlers
	done := make(chan verdict, 1)
	kept := *capacity
	v.running.Go(func() {
		result := verdict{denial: &denial{message: "the handler has ended its goroutine", code: http.StatusInternalServerError}}
		defer func() {
			done <- result
			if left.Swap(true) {
				kept.release()
			}
		}()
		result = handle()
	})
	select {
	case result = <-done:
		return result, true
	case <-client.Done():
	}
	if left.Swap(true) {
		return <-done, true // they have ended at the same moment
	}
	*capacity = nil
	return verdict{}, false
}

// Wait waits until the handlers have ended whose clients have canceled their reviews, or until ctx
// is done. The server must have ended before.
func (v *Reviewer) Wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() { v.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
