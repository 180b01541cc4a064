package health

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// collecting runs a collector in virtual time.
func collecting(t *testing.T, probes Probes, test func(*testing.T, *collector)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(probes, 30*time.Second, 10*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { c.run(ctx) })
		test(t, c)
		cancel()
		done.Wait()
	})
}

func expect(t *testing.T, c *collector, ctx context.Context, body, problem string) {
	t.Helper()
	got, err := c.get(ctx)
	if text := fmt.Sprint(err); string(got) != body || text != problem && (err != nil || problem != "") {
		t.Errorf("got %s, %s", got, text)
	}
}

func TestResultsAreKeptForTenSeconds(t *testing.T) {
	n := 0
	collecting(t, func(context.Context) (map[string]any, error) {
		n++
		time.Sleep(5 * time.Second)
		return map[string]any{"n": n}, nil
	}, func(t *testing.T, c *collector) {
		expect(t, c, t.Context(), `{"n":1}`, "")
		time.Sleep(10*time.Second - time.Nanosecond)
		expect(t, c, t.Context(), `{"n":1}`, "")
		time.Sleep(time.Nanosecond)
		expect(t, c, t.Context(), `{"n":2}`, "")
	})
}

func TestConcurrentRequestsShareOneCollection(t *testing.T) {
	n := 0
	collecting(t, func(context.Context) (map[string]any, error) {
		n++
		time.Sleep(time.Second)
		return map[string]any{"n": n}, nil
	}, func(t *testing.T, c *collector) {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { expect(t, c, t.Context(), `{"n":1}`, "") })
		}
		all.Wait()
	})
}

func TestFailuresAreSharedButNotKept(t *testing.T) {
	n := 0
	collecting(t, func(context.Context) (map[string]any, error) {
		n++
		time.Sleep(time.Second)
		return nil, fmt.Errorf("no luck, %d", n)
	}, func(t *testing.T, c *collector) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { expect(t, c, t.Context(), "", "no luck, 1") })
		}
		all.Wait()
		expect(t, c, t.Context(), "", "no luck, 2")
	})
}

func TestACanceledRequestDoesNotEndTheCollection(t *testing.T) {
	collecting(t, func(context.Context) (map[string]any, error) {
		time.Sleep(5 * time.Second)
		return map[string]any{"slow": true}, nil
	}, func(t *testing.T, c *collector) {
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		expect(t, c, impatient, "", "context deadline exceeded")
		if time.Since(began) != time.Second {
			t.Errorf("waited for %s", time.Since(began))
		}
		time.Sleep(5 * time.Second)
		expect(t, c, t.Context(), `{"slow":true}`, "")
		if time.Since(began) != 6*time.Second {
			t.Errorf("the probes were called again")
		}
	})
}

func TestSlowProbesAreNamed(t *testing.T) {
	collecting(t, func(ctx context.Context) (map[string]any, error) {
		<-ctx.Done()
		return map[string]any{"quick": 1, "another": 2}, fmt.Errorf("probe 'database' is slow: %w", ctx.Err())
	}, func(t *testing.T, c *collector) {
		began := time.Now()
		expect(t, c, t.Context(), "", "the probes did not finish within 30s (finished: another, quick): probe 'database' is slow: context deadline exceeded")
		if time.Since(began) != 30*time.Second {
			t.Errorf("waited for %s", time.Since(began))
		}
	})
}

func TestProbesThatIgnoreTheirLimitDoNotBlockRequests(t *testing.T) {
	calls := 0
	collecting(t, func(context.Context) (map[string]any, error) {
		calls++
		if calls == 1 {
			time.Sleep(5 * time.Minute)
			return nil, errors.New("too late")
		}
		return map[string]any{"better": true}, nil
	}, func(t *testing.T, c *collector) {
		const stubborn = ", ignore their limit of 30s, and are not called again before they return"
		expect(t, c, t.Context(), "", "the probes have been running for 31s"+stubborn)
		time.Sleep(time.Minute)
		expect(t, c, t.Context(), "", "the probes have been running for 1m31s"+stubborn)
		time.Sleep(5 * time.Minute)
		expect(t, c, t.Context(), `{"better":true}`, "")
	})
}

func TestParsingOfTheProbeURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://":                           "localhost:80 /",
		"http:///healthz":                   "localhost:80 /healthz",
		"http://:8080":                      "localhost:8080 /",
		"http://0.0.0.0:8080/healthz":       "0.0.0.0:8080 /healthz",
		"HTTP://example.com/a/b/":           "example.com:80 /a/b/",
		"http://[::1]:8080/healthz":         "[::1]:8080 /healthz",
		"http://me:pw@host:1/path?query#no": "host:1 /path",
		"http://localhost:0/a%20b":          "localhost:0 /a b",
	} {
		address, path, err := probeURL(url)
		if got := address + " " + path; got != want || err != nil {
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
}
