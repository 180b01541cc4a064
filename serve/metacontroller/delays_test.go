package metacontroller

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// delays is a queue that notes the delays.
type delays struct {
	workqueue.TypedRateLimitingInterface[key]
	list []time.Duration
}

func (d *delays) AddAfter(_ key, delay time.Duration) { d.list = append(d.list, delay) }

func TestALongDelayOfAHookIsNotANegativeOne(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{1.5: 1500 * time.Millisecond, 3600: time.Hour, 1e10: longestDelay, 1e300: longestDelay} {
		queue := &delays{}
		c := &controller{queue: queue}
		c.again(key{}, seconds)
		if len(queue.list) != 1 || queue.list[0] != want {
			t.Errorf("%v seconds: the delays are %v", seconds, queue.list)
		}
	}
	for header, want := range map[string]time.Duration{"2": 2 * time.Second, "9223372036854775807": longestDelay, "99999999999": longestDelay} {
		if got := RetryAfter(header, time.Now()); got != want {
			t.Errorf("Retry-After %s: got %v", header, got)
		}
	}
	if got := RetryAfter("Fri, 31 Dec 9999 23:59:59 GMT", time.Now()); got < longestDelay {
		t.Errorf("a far date: got %v", got)
	}
}
