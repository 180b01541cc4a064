package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestTheOperatorCanWaitForTheAPIServer(t *testing.T) {
	for name, c := range map[string]struct {
		down, wait time.Duration
		want       bool
	}{
		"up in time":    {time.Minute, 2 * time.Minute, true},
		"up too late":   {3 * time.Minute, 2 * time.Minute, false},
		"no waiting":    {time.Minute, 0, false},
		"up at once":    {0, 0, true},
		"never stopped": {time.Hour, 2 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := gopftest.NewCluster(t, resource)
				if c.down > 0 {
					fault := cluster.Fault(gopftest.Requests("", "").From(1), gopftest.Drop())
					time.AfterFunc(c.down, fault.Stop)
				}
				op := gopf.New()
				gopf.For[*Example](op, resource).OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return nil })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ready, began := false, time.Now()
				err := make(chan error, 1)
				go func() {
					err <- op.Run(ctx, gopf.Cluster(cluster.RESTConfig()), gopf.Log(quiet()), gopf.WaitForCluster(c.wait), gopf.WhenReady(func() { ready = true }))
				}()
				if c.want {
					time.Sleep(c.down + time.Minute)
					cancel()
				}
				failure := <-err
				if ready != c.want || (failure == nil) != c.want {
					t.Errorf("after %s: ready %t, error %v", time.Since(began), ready, failure)
				}
				if took := time.Since(began); !c.want && took > c.wait+20*time.Second {
					t.Errorf("gave up after %s", took)
				}
			})
		})
	}
}

func TestWaitingForTheAPIServerStopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t, resource)
		cluster.Fault(gopftest.Requests("", "").From(1), gopftest.Drop())
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		began := time.Now()
		_ = op.Run(ctx, gopf.Cluster(cluster.RESTConfig()), gopf.Log(quiet()), gopf.WaitForCluster(time.Hour))
		if took := time.Since(began); took > 100*time.Second {
			t.Errorf("stopped after %s", took)
		}
	})
}
