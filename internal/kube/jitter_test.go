package kube

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/jitter"
)

// attemptsWith returns when a request is sent to a server that refuses it n times.
func attemptsWith(t *testing.T, random jitter.Source, n int, refused scripted) (sent []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := deciding(func() scripted {
			if sent = append(sent, time.Since(began)); len(sent) <= n {
				return refused
			}
			return ok(onePod)
		})
		client, _ := f.client(t)
		client = client.Derive(func(o *Options) { o.Jitter = random })
		if err := patchIt(t.Context(), client); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
	})
	return sent
}

func constant(x float64) jitter.Source { return func() float64 { return x } }

const halfSecond = 500 * time.Millisecond

func TestTwoProcessesDoNotRetryAtTheSameInstants(t *testing.T) {
	exact := attemptsWith(t, nil, 4, refusal(http.StatusServiceUnavailable, ""))
	if diff := cmp.Diff([]time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 7 * time.Second}, exact); diff != "" {
		t.Error(diff)
	}
	one := attemptsWith(t, constant(0.5), 4, refusal(http.StatusServiceUnavailable, ""))
	if diff := cmp.Diff([]time.Duration{0, 900 * time.Millisecond, 1800 * time.Millisecond, 3600 * time.Millisecond, 6300 * time.Millisecond}, one); diff != "" {
		t.Error(diff)
	}
	other := attemptsWith(t, constant(0.25), 4, refusal(http.StatusServiceUnavailable, ""))
	for _, at := range one[1:] {
		if slices.Contains(other, at) || slices.Contains(exact, at) {
			t.Errorf("two processes retry after %s: %v and %v", at, one, other)
		}
	}
}

func TestAPauseThatTheServerAsksForIsNotShortened(t *testing.T) {
	got := attemptsWith(t, constant(0.9), 1, reply(http.StatusTooManyRequests, "", "Retry-After", "4"))
	if diff := cmp.Diff([]time.Duration{0, 4 * time.Second}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRetriesAfterRefusedCredentialsHaveJitter(t *testing.T) {
	client := &Client{opts: Options{Jitter: constant(0.5)}}
	for n, want := range map[int]time.Duration{1: 225 * time.Millisecond, 2: 450 * time.Millisecond, 5: 3600 * time.Millisecond, 6: 9 * halfSecond, 1000: 9 * halfSecond} {
		if got := client.authPause(n); got != want {
			t.Errorf("after %d refusals: got %s, want %s", n, got, want)
		}
	}
}
