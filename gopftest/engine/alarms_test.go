package engine_test

import (
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A tenant sets the end of a pause, and with it the time of the alarm, to the year 9999.
func TestAlarmsOfDeletedObjectsAreRemoved(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	address := freeAddress(t)
	op.Settings.Metrics.Address = address
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create", (&calls{}).handler("create"))
	gopftest.Start(t, op, c, gopf.Log(quiet()))
	const objects = 20
	waiting := func(want float64) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for got := scraped(t, address, "gopf_retries_waiting"); got != want; got = scraped(t, address, "gopf_retries_waiting") {
			if time.Now().After(deadline) {
				t.Fatalf("%v alarms wait, want %v", got, want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for i := range objects {
		o := example(fmt.Sprint("o", i), "a")
		o.SetAnnotations(map[string]string{"gopf.dev/pause": forever})
		c.Create(t, o)
	}
	waiting(objects)
	for i := range objects {
		c.Delete(t, resource, "default", fmt.Sprint("o", i))
	}
	waiting(0)
}
