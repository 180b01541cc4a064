package kube

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// after makes a request and tells when it was answered.
func after(t *testing.T, c *Client) time.Duration {
	began := time.Now()
	if err := patchIt(t.Context(), c); err != nil {
		t.Errorf("got the error %q", err)
	}
	return time.Since(began)
}

func TestALongPauseEndsSoonAfterAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		lasts, answered time.Duration // since the first attempt
	}{
		"over within the first pauses": {3 * time.Second, 4 * time.Second},
		"over after half a minute":     {34 * time.Second, 38 * time.Second},
		"over within the last pause":   {46 * time.Second, 48 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := deciding(func() scripted {
					if time.Since(began) < c.lasts {
						return refusal(503, "")
					}
					return ok(onePod)
				})
				client, _ := f.client(t)
				if got := after(t, client); got != c.answered {
					t.Errorf("answered after %v, want %v", got, c.answered)
				}
			})
		})
	}
}

// A server that cannot be reached is tried every second.
func TestPausesAreShortWhileTheServerCannotBeReached(t *testing.T) {
	for _, lasts := range []time.Duration{3 * time.Second, 34 * time.Second, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			f := deciding(func() scripted {
				if time.Since(began) < lasts {
					return breaks(errDial)
				}
				return ok(onePod)
			})
			client, _ := f.client(t)
			if got := after(t, client); got > lasts+2*time.Second {
				t.Errorf("answered after %v, but the server was back after %v", got, lasts)
			}
		})
	}
}

func TestOneRequestGoesAheadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		const lasts = 40 * time.Second
		f := deciding(func() scripted {
			if time.Since(began) < lasts {
				return refusal(503, "")
			}
			return ok(onePod)
		})
		client, _ := f.client(t)
		var waiting sync.WaitGroup
		const many = 100
		for range many {
			waiting.Go(func() {
				if got := after(t, client); got > lasts+patience {
					t.Errorf("answered after %v", got)
				}
			})
		}
		waiting.Wait()
		// Eight numbered attempts each by then, one more each with success, and not
		// many more.
		if n := len(f.times()); n > 9*many+10 {
			t.Errorf("%d requests were made", n)
		}
	})
}

func TestAnAnswerToOneRequestEndsThePausesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := deciding(func() scripted {
			if time.Since(began) < 20*time.Second {
				return refusal(503, "")
			}
			return ok(onePod)
		})
		client, _ := f.client(t, func(o *Options) { o.Backoffs = slices.Values([]time.Duration{time.Hour}) })
		// Somebody else has gone ahead just now: this one does not.
		client.shared.recovery.ahead = time.Now().Add(time.Hour)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got, want := after(t, client), 20*time.Second; got != want {
				t.Errorf("answered after %v, want %v", got, want)
			}
		})
		time.Sleep(20 * time.Second)
		if err := get(t.Context(), client); err != nil {
			t.Error(err)
		}
		waiting.Wait()
	})
}

func TestThePauseThatTheServerAsksForIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(reply(429, "", "Retry-After", "30"), ok(onePod)).client(t)
		if got, want := after(t, client), 30*time.Second; got != want {
			t.Errorf("answered after %v, want %v", got, want)
		}
	})
}

func TestThePauseThatTheServerAsksForIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(reply(429, "", "Retry-After", "3600"), ok(onePod)).client(t)
		if got, want := after(t, client), 5*time.Minute; got != want {
			t.Errorf("answered after %v, want %v", got, want)
		}
	})
}

func TestEarlyAttemptsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, log := answers(refusal(503, "")).client(t)
		if err := get(t.Context(), client); err == nil {
			t.Error("there is no error")
		}
		if n := len(log.all); n != 9 || !strings.Contains(log.all[8], "Request attempt #9 failed; escalating") {
			t.Errorf("the log is %q", log.all)
		}
	})
}

// deciding answers each request as the function says.
func deciding(decide func() scripted) *fake {
	return answers(func(r *http.Request) (*http.Response, error) { return decide()(r) })
}
