package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
)

func TestIdleOperatorProbesTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVitals(Config{}, nil)
		v.request(kube.Observation{Code: 200})
		var asked atomic.Int32
		var down atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			v.inquire(ctx, func(ctx context.Context) {
				asked.Add(1)
				if !down.Load() {
					v.request(kube.Observation{Code: 403})
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
		v := newVitals(Config{}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				v.request(kube.Observation{Code: 200})
				time.Sleep(10 * time.Second)
			}
		}()
		v.inquire(ctx, func(context.Context) { t.Error("unexpected probe") })
		<-ended
	})
}
