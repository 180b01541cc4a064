package stream

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RefusalGrace is the time for which the API server must forbid a stream before that counts.
// An API server that has just started may forbid requests for a moment, and a new namespace
// may get its Roles a moment later.
const RefusalGrace = 5 * time.Second

// OnRefusal makes the stream call then when the API server has forbidden it (403) for
// [RefusalGrace]. Any other status of the stream starts the time again. then is called from
// another goroutine than that of Run. The caller must call end after Run has returned; then
// may still be running when end returns.
func (c *Config) OnRefusal(then func()) (end func()) {
	var timer *time.Timer
	stop := func() {
		if timer != nil {
			timer.Stop()
		}
	}
	pass := c.Status
	c.Status = func(s Status) {
		if pass != nil {
			pass(s)
		}
		stop()
		if apierrors.IsForbidden(s.Err) {
			timer = time.AfterFunc(RefusalGrace, then)
		}
	}
	return stop
}
