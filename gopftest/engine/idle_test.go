package engine_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestIdleAndWaitingObjectsHaveNoGoroutines(t *testing.T) {
	for name, field := range map[string]string{"idle": "idle", "waiting": "waiting"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				kex := gopf.For[*Example](op, resource)
				kex.WithField("spec.field", gopf.Is("idle")).OnCreate("quick", diary.handler("quick"))
				kex.WithField("spec.field", gopf.Is("waiting")).OnCreate("slow", diary.failing("slow", 1, time.Hour))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				before := runtime.NumGoroutine()
				for i := range many {
					c.Create(t, example(fmt.Sprint("x", i), field))
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := len(diary.all()); got != many {
					t.Errorf("%d calls, want %d", got, many)
				}
				if got := runtime.NumGoroutine() - before; got > 10 {
					t.Errorf("%d goroutines more than before for %d objects", got, many)
				}
			})
		})
	}
}
