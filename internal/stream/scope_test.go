package stream

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// item returns a pod of a namespace. Its name and uid are name.
func item(namespace, name, rv string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":%q}}`, namespace, name, name, rv)
}

func happens(typ kube.EventType, namespace, name, rv string) part {
	return line(`{"type":%q,"object":%s}`, typ, item(namespace, name, rv))
}

func TestScopes(t *testing.T) {
	const s = time.Second
	cases := map[string]struct {
		script       []answer
		change       func(*Scope)
		known        map[string][]string // names by namespace
		want         []string
		wantRequests []string
	}{
		"other namespaces are dropped": {
			script: []answer{open(
				happens("ADDED", "a", "a1", "5"), happens("ADDED", "x", "x1", "6"), initialEnd("9"),
				happens("ADDED", "a", "a2", "10"), happens("ADDED", "x", "x2", "11"), happens("DELETED", "x", "x1", "12"), happens("DELETED", "a", "a1", "13"),
			)},
			want:         []string{"LISTED a/a1@5", "SYNCED [a]", "ADDED a/a2@10", "DELETED a/a1@13"},
			wantRequests: []string{"0s watchlist"},
		},
		"an added namespace is listed, and older events are dropped": {
			script: []answer{open(
				happens("ADDED", "b", "b1", "5"), initialEnd("9"),
				later(4*s, happens("MODIFIED", "b", "b1", "10")), later(2*s, happens("MODIFIED", "b", "b1", "11")),
				happens("MODIFIED", "a", "a1", "12"), happens("MODIFIED", "b", "b1", "13"), happens("DELETED", "b", "b2", "14"),
			), list("12", "", item("b", "b1", "11"), item("b", "b2", "8"))},
			change: func(scope *Scope) {
				time.Sleep(5 * s)
				scope.Add("b")
				scope.Add("a") // it is there already
			},
			want:         []string{"SYNCED [a]", "LISTED b/b1@11", "LISTED b/b2@8", "SYNCED [b]", "MODIFIED a/a1@12", "MODIFIED b/b1@13", "DELETED b/b2@14"},
			wantRequests: []string{"0s watchlist", "5s list"},
		},
		"watch events wait for the list of an added namespace": {
			script: []answer{
				open(initialEnd("9"), later(2*s, happens("ADDED", "a", "a1", "10")), happens("DELETED", "b", "b1", "11")),
				closed(line(`{"metadata":{"resourceVersion":"9"},"items":[%s`, item("b", "b1", "7")), later(3*s, line(`]}`))),
			},
			change:       func(scope *Scope) { time.Sleep(s); scope.Add("b") },
			want:         []string{"SYNCED [a]", "LISTED b/b1@7", "SYNCED [b]", "ADDED a/a1@10", "DELETED b/b1@11"},
			wantRequests: []string{"0s watchlist", "1s list"},
		},
		"a namespace that is added during the list of the cluster is listed after it": {
			script: []answer{open(
				happens("ADDED", "a", "a1", "5"), later(2*s, happens("ADDED", "b", "b1", "6")), later(2*s, initialEnd("9")),
			), list("9", "", item("b", "b1", "6"))},
			change:       func(scope *Scope) { time.Sleep(s); scope.Add("b") },
			want:         []string{"LISTED a/a1@5", "SYNCED [a]", "LISTED b/b1@6", "SYNCED [b]"},
			wantRequests: []string{"0s watchlist", "4s list"},
		},
		"a failed list of an added namespace is retried": {
			script: []answer{
				open(initialEnd("9"), later(1050*time.Millisecond, happens("ADDED", "b", "b1", "10")), happens("ADDED", "a", "a1", "11")),
				status(500, "InternalError"), status(403, "Forbidden"), list("12", "", item("b", "b1", "10")),
			},
			change:       func(scope *Scope) { time.Sleep(s); scope.Add("b") },
			want:         []string{"SYNCED [a]", "ADDED a/a1@11", "LISTED b/b1@10", "SYNCED [b]"},
			wantRequests: []string{"0s watchlist", "1s list", "1s list", "1.1s list"},
		},
		"a removed namespace is dropped, and listed again when it is back": {
			script: []answer{
				open(happens("ADDED", "a", "a1", "5"), initialEnd("9"), later(2*s, happens("MODIFIED", "a", "a1", "10")), later(2*s, happens("MODIFIED", "a", "a1", "11"))),
				list("10", "", item("a", "a1", "10")),
			},
			known: map[string][]string{"a": {"a1", "a0"}},
			change: func(scope *Scope) {
				time.Sleep(s)
				scope.Remove("a")
				time.Sleep(2 * s)
				scope.Add("a")
			},
			want:         []string{"LISTED a/a1@5", "SYNCED [a]", "LISTED a/a1@10", "DELETED a/a0@", "SYNCED [a]", "MODIFIED a/a1@11"},
			wantRequests: []string{"0s watchlist", "3s list"},
		},
		"a relist covers all namespaces": {
			script: []answer{
				open(initialEnd("9"), later(2*s, errorEvent(410, "Expired"))),
				list("9", ""),
				open(happens("ADDED", "a", "a1", "10"), happens("ADDED", "b", "b1", "8"), initialEnd("12"), happens("MODIFIED", "b", "b1", "13")),
			},
			change:       func(scope *Scope) { time.Sleep(s); scope.Add("b") },
			want:         []string{"SYNCED [a]", "SYNCED [b]", "LISTED a/a1@10", "LISTED b/b1@8", "SYNCED [a b]", "MODIFIED b/b1@13"},
			wantRequests: []string{"0s watchlist", "1s list", "2s watchlist"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			var changes sync.WaitGroup
			o := observe(t, 9*s, &server{script: c.script}, func(cfg *Config) {
				cfg.Namespace = ""
				cfg.Scope = NewScope(func(namespace string) iter.Seq[object.Identity] {
					var ids []object.Identity
					for _, name := range c.known[namespace] {
						ids = append(ids, object.Identity{Namespace: namespace, Name: name, UID: name})
					}
					return slices.Values(ids)
				}, slices.Values([]string{"a"}))
				if c.change != nil {
					changes.Go(func() { c.change(cfg.Scope) })
				}
			}, func(e Event) {
				if e.Type == Synced {
					got = append(got, fmt.Sprint("SYNCED ", slices.Sorted(slices.Values(e.Namespaces))))
					return
				}
				got = append(got, fmt.Sprintf("%s %s/%s@%s", e.Type, e.Body.Namespace, e.Body.Name, e.Body.ResourceVersion))
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantRequests, o.requests); diff != "" {
				t.Errorf("requests: -want +got\n%s", diff)
			}
		})
	}
}

func TestBookmarksCauseNoFurtherProbes(t *testing.T) {
	const s = time.Second
	parts := []part{initialEnd("9")}
	for range 12 {
		parts = append(parts, later(15*s, bookmark("10")))
	}
	o := observe(t, 180*s, &server{script: []answer{open(parts...)}}, nil)
	if diff := cmp.Diff([]string{"0s watchlist", "10s probe 9", "1m10s probe 10", "2m10s probe 10"}, o.requests); diff != "" {
		t.Errorf("requests: -want +got\n%s", diff)
	}
}

// slowProbes is a server whose watches are silent and whose probes get no response.
type slowProbes struct {
	mu         sync.Mutex
	open, most int // probes at the same time
	all        int
	watches    int
}

func (s *slowProbes) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.RawQuery, "timeoutSeconds=1") {
		s.mu.Lock()
		s.watches++
		s.mu.Unlock()
		return open(initialEnd("9"))(req)
	}
	s.mu.Lock()
	s.open++
	s.all++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	<-req.Context().Done()
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	return nil, req.Context().Err()
}

func TestASlowServerGetsFewProbesFromManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowProbes{}
		client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: s}, kube.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 69*time.Second)
		defer cancel()
		shared := &Shared{}
		var all sync.WaitGroup
		for i := range 100 {
			cfg := DefaultConfig(pods, fmt.Sprint("ns", i))
			cfg.Shared = shared
			all.Go(func() { _ = New(client, cfg).Run(ctx, func(Event) {}) })
		}
		all.Wait()
		if s.most > maxProbes || s.all >= 100 || s.all < maxProbes {
			t.Errorf("%d probes, up to %d at the same time", s.all, s.most)
		}
		if s.watches != 100 {
			t.Errorf("%d watches of 100 streams", s.watches)
		}
	})
}
