package gopftest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// errCut ends a watch by breaking its connection.
var errCut = errors.New("connection cut by the test")

// serveWatch sends events until the watch ends or the client disconnects.
func (x *exchange) serveWatch(s *scope, view *view) error {
	options, err := s.listOptions(x.r.URL.Query())
	if err != nil {
		return err
	}
	st, err := s.watch(x.r.Context(), options, view)
	if err != nil {
		return err
	}
	if err := view.check(false); err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", mediaJSON)
	x.w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(x.w)
	// Flush now: the client waits for the headers, not for the first event.
	if err := control.Flush(); err != nil {
		return nil
	}

	st.request = x.log.snapshot()
	st.write = func(line []byte) error {
		view.headers = false
		if _, err := x.w.Write(line); err != nil {
			return err
		}
		return control.Flush()
	}
	ctx, done := x.open(x.r.Context(), st)
	defer done()
	// A client that does not read must not block the end of the watch.
	var aborted sync.WaitGroup
	aborted.Add(1)
	stop := context.AfterFunc(ctx, func() { defer aborted.Done(); _ = control.SetWriteDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			aborted.Wait() // the response must not be used after the return
		}
	}()
	err = st.run(ctx)
	if errors.Is(err, errCut) || errors.Is(context.Cause(ctx), errCut) {
		panic(http.ErrAbortHandler)
	}
	return nil // the client is gone, or the error was sent as an event
}

// line returns the event in its wire format.
func (f frame) line() []byte {
	return bytes.Join([][]byte{[]byte(`{"type":"` + string(f.kind) + `","object":`), f.object, []byte("}\n")}, nil)
}
