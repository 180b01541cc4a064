package stream

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// olds returns n initial objects, as events and as list items.
func olds(n int) (events []part, items []string) {
	for i := range n {
		events = append(events, event("ADDED", fmt.Sprint("old", i), fmt.Sprint("o", i), "5"))
		items = append(items, pod(fmt.Sprint("old", i), fmt.Sprint("o", i), "5"))
	}
	return events, items
}

// ahead runs a stream with a slow receiver: each list item takes 10 ms. Events that are
// delivered ahead of the list are marked with an arrow; old objects are left out.
func ahead(t *testing.T, s *server, adjust func(*Config)) (events []string, o observed) {
	t.Helper()
	var mu sync.Mutex
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, text)
	}
	o = observe(t, 15*time.Second, s, func(c *Config) {
		c.Newcomers = func(e Event) bool {
			note("-> " + text(e))
			return true
		}
		if adjust != nil {
			adjust(c)
		}
	}, func(e Event) {
		if e.Type == kube.Listed {
			time.Sleep(10 * time.Millisecond)
		}
		if e.Body == nil || !strings.HasPrefix(e.Body.Name, "old") {
			note(text(e))
		}
	})
	return events, o
}

func TestObjectsCreatedDuringALongListAreDeliveredAheadOfIt(t *testing.T) {
	const n = longList + 20
	events, items := olds(n)
	_, few := olds(longList - 1)
	some := func(more ...part) answer { return open(slices.Concat(events, more)...) }
	pages := func(version string, more ...string) answer { return list(version, "", slices.Concat(items, more)...) }
	side := func(parts ...part) answer { return open(parts...) }
	life := []part{event("ADDED", "new", "n", "21"), event("MODIFIED", "new", "n", "23"), event("DELETED", "new", "n", "25")}
	cases := map[string]struct {
		script       []answer
		adjust       func(*Config)
		want         []string
		wantRequests []string
	}{
		"streamed": {
			script:       []answer{some(slices.Concat(life, []part{initialEnd("30")})...), list("20", "more", "{}"), side(life...)},
			want:         []string{"-> ADDED new/n@21", "-> MODIFIED new/n@23", "-> DELETED new/n@25", "SYNCED"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20"},
		},
		"in pages": {
			script: []answer{status(422, "Invalid"), list("10", "", items...), list("20", "more", "{}"),
				side(life[0]), open(slices.Concat(life, []part{event("ADDED", "other", "x", "40")})...)},
			want:         []string{"-> ADDED new/n@21", "SYNCED", "MODIFIED new/n@23", "DELETED new/n@25", "ADDED other/x@40"},
			wantRequests: []string{"0s watchlist", "0s list", "500ms list", "500ms watch 20", "700ms watch 10"},
		},
		"events of other objects are left to the stream": {
			script: []answer{some(initialEnd("19"), event("MODIFIED", "b", "b", "21"), event("DELETED", "c", "c", "22"), event("ADDED", "c", "c2", "23")),
				list("20", "more", "{}"), side(event("MODIFIED", "b", "b", "21"), event("DELETED", "c", "c", "22"), event("ADDED", "c", "c2", "23"))},
			want:         []string{"SYNCED", "MODIFIED b/b@21", "DELETED c/c@22", "ADDED c/c2@23"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20"},
		},
		"an event that is not taken is delivered after the list, with the rest": {
			script: []answer{some(slices.Concat([]part{initialEnd("19")}, life)...), list("20", "more", "{}"), side(life...)},
			adjust: func(c *Config) {
				tell := c.Newcomers
				c.Newcomers = func(e Event) bool { return e.Type != kube.Modified && tell(e) }
			},
			want:         []string{"-> ADDED new/n@21", "SYNCED", "MODIFIED new/n@23", "DELETED new/n@25"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20"},
		},
		"a watch that lags behind the stream delivers nothing": {
			script: []answer{some(life[0], event("ADDED", "other", "x", "22"), later(3*time.Second, life[1]), initialEnd("24")),
				list("20", "more", "{}"), side(later(2*time.Second, life[0]), life[1])},
			want:         []string{"LISTED new/n@21", "LISTED other/x@22", "MODIFIED new/n@23", "SYNCED"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20"},
		},
		"a deletion with the version of the last change": {
			script:       []answer{some(initialEnd("19"), life[0], event("DELETED", "new", "n", "21")), list("20", "more", "{}"), side(life[0])},
			want:         []string{"-> ADDED new/n@21", "SYNCED", "DELETED new/n@21"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20"},
		},
		"a streamed list that fails is followed by one in pages": {
			script: []answer{closed(events...), list("20", "more", "{}"), side(life[0], later(400*time.Millisecond, life[1])),
				pages("26", pod("new", "n", "23"), pod("late", "l", "24")), open(event("DELETED", "new", "n", "27"))},
			want:         []string{"-> ADDED new/n@21", "-> MODIFIED new/n@23", "LISTED late/l@24", "SYNCED", "DELETED new/n@27"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20", "700ms list", "1.41s watch 26"},
		},
		"an object that the watch left behind has changed in the next list": {
			script: []answer{closed(events...), list("20", "more", "{}"), closed(life[0]),
				pages("26", pod("new", "n", "23")), list("27", "more", "{}"), open(), open(event("DELETED", "new", "n", "28"))},
			want:         []string{"-> ADDED new/n@21", "MODIFIED new/n@23", "SYNCED", "DELETED new/n@28"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20", "700ms list", "1.2s list", "1.2s watch 27", "1.4s watch 26"},
		},
		"an object that matches the selector again needs no tombstone": {
			script: []answer{some(initialEnd("19"), event("ADDED", "back", "b", "21"), event("DELETED", "back", "b", "22")),
				list("20", "more", "{}"), side(event("ADDED", "back", "b", "21"))},
			adjust:       func(c *Config) { c.Known = func() iter.Seq[object.Identity] { return slices.Values(known("back/b")) } },
			want:         []string{"-> ADDED back/b@21", "SYNCED", "DELETED back/b@22"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20"},
		},
		"an object whose deletion was delivered needs no tombstone": {
			script:       []answer{closed(events...), list("20", "more", "{}"), side(life...), pages("30")},
			adjust:       func(c *Config) { c.Known = func() iter.Seq[object.Identity] { return slices.Values(known("new/n")) } },
			want:         []string{"-> ADDED new/n@21", "-> MODIFIED new/n@23", "-> DELETED new/n@25", "SYNCED"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20", "700ms list", "1.4s watch 30"},
		},
		"an object that was replaced needs no tombstone": {
			script: []answer{closed(events...), list("20", "more", "{}"), side(life[0], life[2], event("ADDED", "new", "n2", "26")),
				pages("30", pod("new", "n2", "26"))},
			adjust:       func(c *Config) { c.Known = func() iter.Seq[object.Identity] { return slices.Values(known("new/n")) } },
			want:         []string{"-> ADDED new/n@21", "-> DELETED new/n@25", "-> ADDED new/n2@26", "SYNCED"},
			wantRequests: []string{"0s watchlist", "500ms list", "500ms watch 20", "700ms list", "1.4s watch 30"},
		},
		"a short list that takes long": {
			script: []answer{open(event("ADDED", "a", "a", "5"), later(slowList, event("ADDED", "b", "b", "6")), later(slowList, initialEnd("19")), life[0]),
				list("20", "more", "{}"), side(life[0])},
			want:         []string{"LISTED a/a@5", "LISTED b/b@6", "-> ADDED new/n@21", "SYNCED"},
			wantRequests: []string{"0s watchlist", "1.02s list", "1.02s watch 20"},
		},
		"a short list opens no second watch": {
			script:       []answer{status(422, "Invalid"), list("10", "", few...), open()},
			want:         []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "0s list", "490ms watch 10"},
		},
		"Newcomers is nil": {
			script:       []answer{some(slices.Concat([]part{initialEnd("19")}, life[:1])...)},
			adjust:       func(c *Config) { c.Newcomers = nil },
			want:         []string{"SYNCED", "ADDED new/n@21"},
			wantRequests: []string{"0s watchlist"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, o := ahead(t, &server{script: c.script}, c.adjust)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantRequests, withoutProbes(o.requests)); diff != "" {
				t.Errorf("requests: -want +got\n%s", diff)
			}
		})
	}
}

func TestAFailingSecondWatchDoesNotAffectTheStream(t *testing.T) {
	events, _ := olds(longList + 20)
	main := open(slices.Concat(events, []part{initialEnd("19"), event("ADDED", "new", "n", "21")})...)
	for name, script := range map[string][]answer{
		"list refused":                  {status(403, "Forbidden")},
		"list fails":                    {status(500, "InternalError")},
		"list without a response":       {never},
		"watch refused":                 {list("20", "more", "{}"), status(410, "Expired")},
		"watch without a response":      {list("20", "more", "{}"), never},
		"watch breaks":                  {list("20", "more", "{}"), open(cut(0, io.ErrUnexpectedEOF))},
		"watch with an error event":     {list("20", "more", "{}"), open(errorEvent(410, "Expired"), event("ADDED", "new", "n", "21"))},
		"malformed watch":               {list("20", "more", "{}"), open(line("nonsense"))},
		"versions that are not numbers": {list("20", "more", "{}"), open(event("ADDED", "new", "n", "abc"))},
	} {
		t.Run(name, func(t *testing.T) {
			got, o := ahead(t, &server{script: append([]answer{main}, script...)}, nil)
			if diff := cmp.Diff([]string{"SYNCED", "ADDED new/n@21"}, got); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			if diff := cmp.Diff([]string{"listing", "watching"}, o.states); diff != "" {
				t.Errorf("states: -want +got\n%s", diff)
			}
			if diff := cmp.Diff([]string(nil), o.log); diff != "" {
				t.Errorf("log: -want +got\n%s", diff)
			}
			if last := slices.Max(o.times); last > 3*time.Second {
				t.Errorf("the last event was delivered after %v", last)
			}
		})
	}
}

// The second watch may lag behind the next list, and closes before the deletion arrives.
func TestADeletionThatTheSecondWatchMissedIsDeliveredAtTheEndOfTheList(t *testing.T) {
	identity := func(uid, version string) object.Identity {
		return object.Identity{Namespace: "ns", Name: "of-" + uid, UID: uid, ResourceVersion: version}
	}
	told := func(n *newcomers, typ kube.EventType, uid, version string) {
		body, err := object.Parse([]byte(pod("of-"+uid, uid, version)))
		if err != nil {
			t.Fatal(err)
		}
		n.take(Event{Type: typ, Body: body})
	}
	for what, c := range map[string]struct {
		happens func(n *newcomers)
		want    bool
	}{
		"created before the end of the list, but not in it": {func(*newcomers) {}, true},
		"seen by the stream":    {func(n *newcomers) { n.check(kube.Listed, identity("a", "7")) }, false},
		"changed after the end": {func(n *newcomers) { told(n, kube.Modified, "a", "12") }, false},
		"deleted in time":       {func(n *newcomers) { told(n, kube.Deleted, "a", "8") }, false},
		"seen only by an earlier list": {func(n *newcomers) {
			n.check(kube.Listed, identity("a", "7"))
			n.begin()
		}, true},
	} {
		n := &newcomers{tell: func(Event) bool { return true }, end: func() {}, former: map[name]bool{}}
		told(n, kube.Added, "a", "7")
		c.happens(n)
		gone := n.outlived("10")
		if got := len(gone) == 1 && gone[0].UID == "a" && gone[0].Name == "of-a" && gone[0].Namespace == "ns"; got != c.want {
			t.Errorf("%s: got %v, want %v", what, gone, c.want)
		}
		if again := n.outlived("10"); len(again) > 0 {
			t.Errorf("%s: delivered twice: %v", what, again)
		}
	}
}
