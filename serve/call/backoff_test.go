package call

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheDelayOfATenantFollowsItsCalls(t *testing.T) {
	const ms = time.Millisecond
	repeat := func(step string, n int) (steps []string) {
		for range n {
			steps = append(steps, step)
		}
		return steps
	}
	for name, c := range map[string]struct {
		steps []string
		want  time.Duration
	}{
		"no call":                           {nil, 0},
		"a success":                         {[]string{"success"}, 0},
		"a failure":                         {[]string{"failure"}, 100 * ms},
		"failures in a row":                 {repeat("failure", 4), 800 * ms},
		"many failures":                     {repeat("failure", 20), 30 * time.Second},
		"a success after one failure":       {[]string{"failure", "success", "failure"}, 100 * ms},
		"a success ends the delay":          {append(repeat("failure", 9), "success"), 0},
		"one success after many failures":   {append(repeat("failure", 20), "success", "failure"), 30 * time.Second},
		"as many successes as failures":     {append(append(repeat("failure", 5), repeat("success", 5)...), "failure"), 100 * ms},
		"failures at the same time":         {[]string{"failure", "early failure", "early failure"}, 100 * ms},
		"a success of a call before":        {[]string{"failure", "early success"}, 100 * ms},
		"a failure soon after the delay":    {[]string{"failure", "29s", "failure"}, 200 * ms},
		"a failure long after the delay":    {append(repeat("failure", 20), "31s", "failure"), 100 * ms},
		"a failure of another tenant":       {[]string{"failure of another"}, 0},
		"a success of another tenant":       {[]string{"failure", "success of another"}, 100 * ms},
		"the delay is over after some time": {[]string{"failure", "1s"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b backoffs
				own, another := tenant{namespace: "own"}, tenant{namespace: "another"}
				start := time.Now()
				for _, step := range c.steps {
					if left, _ := b.left(own); left > 0 && (step == "failure" || step == "success") {
						time.Sleep(left)
					}
					switch step {
					case "success":
						b.succeed(own, time.Now())
					case "failure":
						b.fail(own, time.Now())
					case "early success":
						b.succeed(own, start.Add(-1))
					case "early failure":
						b.fail(own, start.Add(-1))
					case "success of another":
						b.succeed(another, time.Now())
					case "failure of another":
						b.fail(another, time.Now())
					default:
						left, _ := b.left(own)
						delay, _ := time.ParseDuration(step)
						time.Sleep(left + delay)
					}
				}
				if left, _ := b.left(own); left != c.want {
					t.Errorf("got the delay %v, want %v", left, c.want)
				}
			})
		})
	}
}

func TestASuccessWakesCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoffs
		own := tenant{namespace: "own"}
		for range 10 {
			b.fail(own, time.Now())
		}
		_, over := b.left(own)
		b.succeed(own, time.Now())
		select {
		case <-over:
		default:
			t.Error("the calls still wait")
		}
	})
}

// A network peer can send reviews of objects in namespaces that it invents.
func TestTheBackoffsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoffs
		worst := tenant{namespace: "worst"}
		for range 10 {
			b.fail(worst, time.Now())
		}
		for i := range 3 * maxBackoffs {
			b.fail(tenant{"peer", strconv.Itoa(i)}, time.Now())
			time.Sleep(time.Millisecond)
		}
		if len(b.of) > maxBackoffs {
			t.Errorf("%d tenants are remembered", len(b.of))
		}
		if !b.suspects(worst) {
			t.Error("the tenant with the longest delay was forgotten")
		}
	})
}
