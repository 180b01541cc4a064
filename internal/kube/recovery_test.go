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

// after sends a request and returns the time until its response.
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
					t.Errorf("response after %v, want %v", got, c.answered)
				}
			})
		})
	}
}

// An unreachable server is probed every second.
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
				t.Errorf("response after %v, but the server was back after %v", got, lasts)
			}
		})
	}
}

func TestOneRequestProbesForAll(t *testing.T) {
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
					t.Errorf("response after %v", got)
				}
			})
		}
		waiting.Wait()
		// Eight counted attempts and one success per request, plus a few probes.
		if n := len(f.times()); n > 9*many+10 {
			t.Errorf("%d requests were made", n)
		}
	})
}

func TestAResponseToOneRequestEndsThePausesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := deciding(func() scripted {
			if time.Since(began) < 20*time.Second {
				return refusal(503, "")
			}
			return ok(onePod)
		})
		client, _ := f.client(t, func(o *Options) { o.Backoffs = slices.Values([]time.Duration{time.Hour}) })
		// Another request has just probed the server, so this one waits.
		client.shared.recovery.ahead = time.Now().Add(time.Hour)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got, want := after(t, client), 20*time.Second; got != want {
				t.Errorf("response after %v, want %v", got, want)
			}
		})
		time.Sleep(20 * time.Second)
		if err := get(t.Context(), client); err != nil {
			t.Error(err)
		}
		waiting.Wait()
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(reply(429, "", "Retry-After", "30"), ok(onePod)).client(t)
		if got, want := after(t, client), 30*time.Second; got != want {
			t.Errorf("response after %v, want %v", got, want)
		}
	})
}

func TestRetryAfterIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(reply(429, "", "Retry-After", "3600"), ok(onePod)).client(t)
		if got, want := after(t, client), 5*time.Minute; got != want {
			t.Errorf("response after %v, want %v", got, want)
		}
	})
}

func TestProbesAreNotCountedAsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, log := answers(refusal(503, "")).client(t)
		if err := get(t.Context(), client); err == nil {
			t.Error("got no error")
		}
		if n := len(log.all); n != 9 || !strings.Contains(log.all[8], "Request attempt #9 failed; escalating") {
			t.Errorf("log: got %q", log.all)
		}
	})
}

// deciding responds to each request as the function decides.
func deciding(decide func() scripted) *fake {
	return answers(func(r *http.Request) (*http.Response, error) { return decide()(r) })
}
