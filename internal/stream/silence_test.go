package stream

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
)

func TestSilentWatches(t *testing.T) {
	const s = time.Second
	nothing := func() answer { return open(cut(s, io.EOF)) } // to a probe
	cases := map[string]struct {
		script       []answer
		probes       []answer
		adjust       func(*Config)
		lasting      time.Duration
		wantEvents   []string
		wantRequests []string
		wantLog      []string
	}{
		"a quiet stream is probed and stays": {
			script:       []answer{open(initialEnd("9"))},
			probes:       []answer{nothing(), closed(bookmark("30")), closed(errorEvent(410, "Expired"))},
			lasting:      150 * s,
			adjust:       func(c *Config) { c.InactivityTimeout = 0 },
			wantEvents:   []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "10s probe 9", "1m10s probe 9", "2m10s probe 9"},
		},
		"a stream with bookmarks is probed only in between": {
			script:       []answer{open(initialEnd("9"), later(8*s, bookmark("10")), later(8*s, bookmark("11")), later(60*s, bookmark("12")))},
			lasting:      85 * s,
			wantEvents:   []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "26s probe 11"},
		},
		"a dead stream is replaced when a probe gets more": {
			script:       []answer{open(initialEnd("9")), open(event("ADDED", "a", "1", "10"))},
			probes:       []answer{open(event("ADDED", "a", "1", "10"))},
			lasting:      19 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "10s probe 9", "10.25s watch 9"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"an event during a probe proves nothing": {
			script:       []answer{open(initialEnd("9"), later(10500*time.Millisecond, event("ADDED", "a", "1", "10")))},
			probes:       []answer{open(later(400*time.Millisecond, event("ADDED", "a", "1", "10")))},
			lasting:      19 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "10s probe 9"},
		},
		"a probe that fails or hangs proves nothing": {
			script:       []answer{open(initialEnd("9"))},
			probes:       []answer{status(403, "Forbidden"), open()},
			lasting:      65 * s,
			wantEvents:   []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "10s probe 9"},
		},
		"a probe without a response proves nothing if the server does not respond at all": {
			script:       []answer{open(initialEnd("9")), list("20", ""), open(event("ADDED", "a", "1", "10"))},
			probes:       []answer{never},
			lasting:      75 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "10s probe 9", "1m10s list", "1m10s watch 9"},
		},
		"a probe on a dead connection is repeated at once": {
			script:       []answer{open(initialEnd("9")), open(event("ADDED", "a", "1", "10"))},
			probes:       []answer{broken(io.ErrUnexpectedEOF), open(event("ADDED", "a", "1", "10"))},
			lasting:      19 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "10s probe 9", "10s probe 9", "10.25s watch 9"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"an event during a probe without a response shows that the stream is alive": {
			script:       []answer{open(initialEnd("9"), later(15*s, event("ADDED", "a", "1", "10")))},
			probes:       []answer{never},
			lasting:      22 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "10s probe 9"},
		},
		"a stream without even bookmarks is replaced": {
			script:       []answer{open(initialEnd("9")), list("20", ""), open(event("ADDED", "a", "1", "21"))},
			lasting:      75 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@21"},
			wantRequests: []string{"0s watchlist", "10s probe 9", "1m10s list", "1m10s watch 9"},
		},
		"a server that has lost our version is listed again": {
			script:       []answer{open(initialEnd("9")), list("5", ""), open(event("ADDED", "a", "1", "4"), initialEnd("5"))},
			lasting:      79 * s,
			wantEvents:   []string{"SYNCED", "LISTED a/1@4", "SYNCED"},
			wantRequests: []string{"0s watchlist", "10s probe 9", "1m10s list", "1m10s watchlist"},
			wantLog:      []string{"WARN Resource versions of the API server went back, as after a restore from a backup; relisting everything."},
		},
		"without probes": {
			script:       []answer{open(initialEnd("9")), list("20", "")},
			adjust:       func(c *Config) { c.ProbeAfter = 0 },
			lasting:      79 * s,
			wantEvents:   []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "1m10s list", "1m10s watch 9"},
		},
		"a client timeout": {
			script:       []answer{open(initialEnd("9"), later(5*s, event("ADDED", "a", "1", "10")))},
			adjust:       func(c *Config) { c.ClientTimeout = 12 * s },
			lasting:      30 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "12s watch 10", "22s probe 10", "24s watch 10"},
		},
		"a server timeout": {
			script:       []answer{open(later(15*s, initialEnd("9")))},
			adjust:       func(c *Config) { c.ServerTimeout = 12 * s },
			lasting:      40 * s,
			wantEvents:   []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "25s probe 9", "27s watch 9 for 12", "37s probe 9"},
		},
		"a response that never starts": {
			script:       []answer{closed(initialEnd("9")), never, open(event("ADDED", "a", "1", "10"))},
			lasting:      35 * s,
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "30.1s watch 9"},
			wantLog:      []string{"WARN Cannot list or watch the resource; retrying.", "INFO Watching the resource again."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.lasting, &server{script: c.script, probes: c.probes}, c.adjust)
			if diff := cmp.Diff(c.wantEvents, o.events); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantRequests, o.requests); diff != "" {
				t.Errorf("requests: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantLog, o.log); diff != "" {
				t.Errorf("log: -want +got\n%s", diff)
			}
		})
	}
}

// never does not respond.
func never(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func TestASlowReceiverIsNotASilentWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{started: time.Now(), script: []answer{open(initialEnd("9"), event("ADDED", "a", "1", "10"), event("ADDED", "b", "2", "11"))}}
		client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: s}, kube.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var got []string
		_ = New(client, DefaultConfig(pods, "ns")).Run(ctx, func(e Event) {
			got = append(got, text(e))
			if e.Type == kube.Added {
				time.Sleep(5 * time.Minute)
			}
		})
		if diff := cmp.Diff([]string{"SYNCED", "ADDED a/1@10", "ADDED b/2@11"}, got); diff != "" {
			t.Errorf("events: -want +got\n%s", diff)
		}
		if diff := cmp.Diff([]string{"0s watchlist"}, s.requests); diff != "" {
			t.Errorf("requests: -want +got\n%s", diff)
		}
	})
}

// The server responds to another request while a probe gets no response. So the server
// is not slow, and the watch is as dead as the probe's connection.
func TestAnUnansweredProbeReplacesTheWatchIfTheServerIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{started: time.Now(), script: []answer{
			open(initialEnd("9")), closed(line(`{}`)), open(event("ADDED", "a", "1", "10")),
		}, probes: []answer{never}}
		client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: s}, kube.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		go func() {
			time.Sleep(12 * time.Second)
			_, _ = client.Version(ctx)
		}()
		var got []string
		_ = New(client, DefaultConfig(pods, "ns")).Run(ctx, func(e Event) { got = append(got, text(e)) })
		if diff := cmp.Diff([]string{"SYNCED", "ADDED a/1@10"}, got); diff != "" {
			t.Errorf("events: -want +got\n%s", diff)
		}
		if diff := cmp.Diff([]string{"0s watchlist", "10s probe 9", "12s list", "20s watch 9"}, s.requests); diff != "" {
			t.Errorf("requests: -want +got\n%s", diff)
		}
	})
}
