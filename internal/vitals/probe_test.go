package vitals

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
)

// listening returns the vitals of an operator with a health endpoint.
func listening(t *testing.T) *Vitals {
	v, err := New(Config{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestIdleOperatorProbesTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := listening(t)
		v.Request(kube.Observation{Code: 200})
		var asked atomic.Int32
		var down atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			v.Probe(ctx, func(ctx context.Context) {
				asked.Add(1)
				if !down.Load() {
					v.Request(kube.Observation{Code: 403})
					return
				}
				<-ctx.Done()
			})
		}()
		for range 3600 {
			time.Sleep(time.Second)
			synctest.Wait()
			if age := time.Since(v.snapshot().Answered); age >= time.Minute {
				t.Fatalf("the last response is %s old", age)
			}
		}
		if n := asked.Load(); n > 120 {
			t.Errorf("%d probes in an hour, want at most one every 30 s", n)
		}
		down.Store(true)
		time.Sleep(time.Hour)
		if age := time.Since(v.snapshot().Answered); age < 59*time.Minute {
			t.Errorf("the last response is %s old, but there was none for an hour", age)
		}
		cancel()
		<-ended
	})
}

func TestBusyOperatorDoesNotProbeTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := listening(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				v.Request(kube.Observation{Code: 200})
				time.Sleep(10 * time.Second)
			}
		}()
		v.Probe(ctx, func(context.Context) { t.Error("unexpected probe") })
		<-ended
	})
}
