package crew

import (
	"sync"
	"testing"
)

func TestCrewMayGrowDuringWait(t *testing.T) {
	var c Crew
	<-c.Empty()
	var waiting sync.WaitGroup
	for range 100 {
		waiting.Go(func() {
			c.Go(func() { c.Go(func() {}) })
			<-c.Empty()
		})
	}
	waiting.Wait()
	if <-c.Empty(); c.members != 0 {
		t.Errorf("%d members are left", c.members)
	}
}
