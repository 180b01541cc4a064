package kube

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOutageIsLoggedOncePerMinuteWithACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(5*time.Minute + 30*time.Second)
		server := deciding(func() scripted {
			if time.Now().Before(up) {
				return breaks(errDial)
			}
			return ok(onePod)
		})
		client, log := server.client(t)
		ctx, cancel := context.WithDeadline(t.Context(), up)
		defer cancel()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				for ctx.Err() == nil {
					_ = get(ctx, client)
				}
			})
		}
		waiting.Wait()
		if n := len(log.lines); n < 5 || n > 6 {
			t.Errorf("%d lines in 5 minutes and a half: %q", n, log.lines)
		}
		if omitted := log.last["omitted"]; omitted.Kind().String() != "Int64" || omitted.Int64() < 100 {
			t.Errorf("the last line has omitted=%v", omitted)
		}
		if n := len(log.all); n < 1000 {
			t.Errorf("only %d lines at any level", n)
		}
	})
}

func TestFailuresAreLimitedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unreachable, busy := error(&UnreachableError{Err: errDial}), error(statusError(&call{}, &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}))
		own := errors.New("not about the server")
		var o Outages
		for i, c := range []struct {
			err     error
			after   time.Duration
			log     bool
			omitted int
		}{
			{unreachable, 0, true, 0}, {unreachable, 59 * time.Second, false, 0}, {busy, 0, true, 0}, {busy, 0, false, 0},
			{own, 0, true, 0}, {own, 0, true, 0}, {unreachable, time.Second, true, 1}, {unreachable, 0, false, 0}, {busy, 59 * time.Second, true, 1},
		} {
			time.Sleep(c.after)
			if log, omitted := o.Failed(c.err); log != c.log || omitted != c.omitted {
				t.Errorf("%d: got %v, %d", i, log, omitted)
			}
		}
		if !o.Over(busy) || o.Over(busy) || !o.Over(own) || !o.Over(own) {
			t.Error("the end of an outage was not logged exactly once")
		}
		var none *Outages
		if log, _ := none.Failed(busy); !log || !none.Over(busy) {
			t.Error("a nil Outages omitted lines")
		}
	})
}
