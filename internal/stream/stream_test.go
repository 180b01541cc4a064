package stream

import (
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/object"
)

// cuts returns n responses that break after the parts.
func cuts(n int, parts ...part) (all []answer) {
	for range n {
		all = append(all, open(append(slices.Clone(parts), cut(0, io.ErrUnexpectedEOF))...))
	}
	return all
}

// deep returns an object that is nested too deeply to be read.
func deep(name, uid, rv string) string {
	return strings.TrimSuffix(pod(name, uid, rv), "}") + `,"spec":` + strings.Repeat("[", 9_994) + strings.Repeat("]", 9_994) + "}"
}

func unreadable(typ, name, uid, rv string) part {
	return line(`{"type":%q,"object":%s}`, typ, deep(name, uid, rv))
}

func TestEventsOfAStream(t *testing.T) {
	refused := errors.New("connection refused")
	cases := map[string]struct {
		script       []answer
		known        []object.Identity
		wantEvents   []string
		wantRequests []string
		wantLog      []string
	}{
		"a streamed list and then changes": {
			script: []answer{open(event("ADDED", "b", "2", "7"), event("ADDED", "a", "1", "5"), initialEnd("9"),
				event("ADDED", "c", "3", "10"), event("MODIFIED", "a", "1", "11"), event("DELETED", "b", "2", "12"))},
			wantEvents:   []string{"LISTED b/2@7", "LISTED a/1@5", "SYNCED", "ADDED c/3@10", "MODIFIED a/1@11", "DELETED b/2@12"},
			wantRequests: []string{"0s watchlist"},
		},
		"changes within the streamed list": {
			script: []answer{open(event("ADDED", "a", "1", "5"), event("ADDED", "b", "2", "7"),
				event("MODIFIED", "a", "1", "8"), event("DELETED", "b", "2", "9"), initialEnd("9"))},
			known:        known("b/2"),
			wantEvents:   []string{"LISTED a/1@5", "LISTED b/2@7", "MODIFIED a/1@8", "DELETED b/2@9", "SYNCED"},
			wantRequests: []string{"0s watchlist"},
		},
		"unreadable objects in a streamed list and after it": {
			script: []answer{open(event("ADDED", "a", "1", "5"), unreadable("ADDED", "b", "2", "6"), unreadable("ADDED", "c", "4", "7"), initialEnd("9"),
				unreadable("MODIFIED", "a", "1", "10"), event("MODIFIED", "d", "5", "11"), unreadable("DELETED", "b", "2", "12"), cut(0, io.ErrUnexpectedEOF)), open()},
			known:        known("b/2", "c/3"),
			wantEvents:   []string{"LISTED a/1@5", "DELETED c/3@ missed", "SYNCED", "MODIFIED d/5@11", "DELETED b/2@12 missed"},
			wantRequests: []string{"0s watchlist", "0s watch 12"},
			wantLog:      slices.Repeat([]string{"ERROR Skipping an object that cannot be read; other objects of this kind are served."}, 3),
		},
		"unreadable objects in pages": {
			script:       []answer{status(422, "Invalid"), list("9", "", pod("a", "1", "5"), deep("b", "2", "6"), pod("c", "3", "7")), open()},
			known:        known("b/2"),
			wantEvents:   []string{"LISTED a/1@5", "LISTED c/3@7", "SYNCED"},
			wantLog:      []string{"ERROR Skipping an object that cannot be read; other objects of this kind are served."},
			wantRequests: []string{"0s watchlist", "0s list", "0s watch 9"},
		},
		"a server that cannot stream lists": {
			script:       []answer{status(422, "Invalid"), list("8", "more", pod("a", "1", "5")), list("9", "", pod("b", "2", "7")), open(event("MODIFIED", "a", "1", "10"))},
			wantEvents:   []string{"LISTED a/1@5", "LISTED b/2@7", "SYNCED", "MODIFIED a/1@10"},
			wantRequests: []string{"0s watchlist", "0s list", "0s list more", "0s watch 9"},
		},
		"resuming from the last event": {
			script: []answer{closed(initialEnd("9"), event("ADDED", "a", "1", "10")),
				closed(event("MODIFIED", "a", "1", "11"), event("DELETED", "a", "1", "12")), open()},
			wantEvents:   []string{"SYNCED", "ADDED a/1@10", "MODIFIED a/1@11", "DELETED a/1@12"},
			wantRequests: []string{"0s watchlist", "0s watch 10", "0s watch 12"},
		},
		"resuming from a bookmark": {
			script:       []answer{closed(initialEnd("9"), event("ADDED", "a", "1", "10"), bookmark("20")), open()},
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "0s watch 20"},
		},
		"connection broken within an event": {
			script: []answer{open(initialEnd("9"), event("ADDED", "a", "1", "10"), part{text: `{"type":"MODIFIED","obj`}, cut(0, io.ErrUnexpectedEOF)),
				open(event("MODIFIED", "a", "1", "11"))},
			wantEvents:   []string{"SYNCED", "ADDED a/1@10", "MODIFIED a/1@11"},
			wantRequests: []string{"0s watchlist", "0s watch 10"},
		},
		"connections broken within the same event repeatedly": {
			script: slices.Concat([]answer{closed(initialEnd("9"))},
				cuts(maxTorn, part{text: `{"type":"ADDED","object":{"metadata":{"na`}),
				[]answer{open(event("ADDED", "a", "1", "10"), initialEnd("20"))}),
			wantEvents:   []string{"SYNCED", "LISTED a/1@10", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "100ms watch 9", "300ms watch 9", "700ms watch 9", "1.5s watch 9", "3.1s watchlist"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"connections broken between events repeatedly": {
			script: slices.Concat([]answer{closed(initialEnd("9"))},
				cuts(maxTorn), []answer{open(event("ADDED", "a", "1", "10"))}),
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "100ms watch 9", "300ms watch 9", "700ms watch 9", "1.5s watch 9", "3.1s watch 9"},
		},
		"an unterminated last line": {
			script:       []answer{closed(initialEnd("9"), part{text: `{"object":` + pod("a", "1", "10") + `,"type":"ADDED"}`}), open()},
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "0s watch 10"},
		},
		"an unknown type": {
			script:       []answer{closed(initialEnd("9"), event("WOW", "a", "1", "10"), event("WOW", "a", "1", "11")), open()},
			wantEvents:   []string{"SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9"},
			wantLog:      []string{"WARN Ignoring events of an unknown type."},
		},
		"expired version, as an event": {
			script:       []answer{closed(initialEnd("9")), closed(errorEvent(410, "Expired")), open(event("ADDED", "a", "1", "15"), initialEnd("20"))},
			known:        known("b/2"),
			wantEvents:   []string{"DELETED b/2@ missed", "SYNCED", "LISTED a/1@15", "DELETED b/2@ missed", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "0s watchlist"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"expired version, as a response": {
			script:       []answer{closed(initialEnd("9")), status(410, "Gone"), open(initialEnd("20"))},
			wantEvents:   []string{"SYNCED", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "0s watchlist"},
			wantLog:      []string{"WARN Cannot list or watch the resource; retrying.", "INFO Watching the resource again."},
		},
		"an object that was replaced by another of its name": {
			script:       []answer{open(event("ADDED", "a", "2", "15"), event("ADDED", "c", "3", "16"), initialEnd("20"))},
			known:        known("a/1", "c/3"),
			wantEvents:   []string{"DELETED a/1@ missed", "LISTED a/2@15", "LISTED c/3@16", "SYNCED"},
			wantRequests: []string{"0s watchlist"},
		},
		"several objects that had the same name": {
			script:       []answer{status(400, "BadRequest"), list("20", "", pod("a", "2", "15")), open()},
			known:        known("a/2", "a/1"),
			wantEvents:   []string{"LISTED a/2@15", "DELETED a/1@ missed", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s list", "0s watch 20"},
		},
		"an error event of another kind is resumed, then listed": {
			script: []answer{closed(initialEnd("9")), closed(errorEvent(500, "InternalError")), closed(errorEvent(500, "InternalError")),
				open(initialEnd("20"))},
			wantEvents:   []string{"SYNCED", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "100ms watch 9", "300ms watchlist"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"a malformed event once": {
			script:       []answer{open(initialEnd("9"), line(`{"type":"ADDED","object":{"metadata":,}}`)), open(event("ADDED", "a", "1", "10"))},
			wantEvents:   []string{"SYNCED", "ADDED a/1@10"},
			wantRequests: []string{"0s watchlist", "0s watch 9"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"a malformed event that repeats forever": {
			script: []answer{closed(initialEnd("9")), open(line(`nonsense`)), open(line(`{"type":"ADDED","object":[]}`)),
				open(event("ADDED", "a", "1", "10"), initialEnd("10"))},
			wantEvents:   []string{"SYNCED", "LISTED a/1@10", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "100ms watch 9", "300ms watchlist"},
			wantLog:      []string{"WARN The watch failed; opening a new one."},
		},
		"a kind that was removed and added again": {
			script:       []answer{closed(initialEnd("9")), status(404, "NotFound"), status(404, "NotFound"), open(initialEnd("20"))},
			known:        known("a/1"),
			wantEvents:   []string{"DELETED a/1@ missed", "SYNCED", "DELETED a/1@ missed", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "0s watchlist", "0s watchlist"},
			wantLog:      []string{"WARN Cannot list or watch the resource; retrying.", "INFO Watching the resource again."},
		},
		"a streamed list that breaks is retried, then read in pages": {
			script: []answer{closed(event("ADDED", "a", "1", "5"), errorEvent(504, "Timeout")), closed(event("ADDED", "a", "1", "5")),
				list("9", "", pod("a", "1", "5")), open()},
			wantEvents:   []string{"LISTED a/1@5", "LISTED a/1@5", "LISTED a/1@5", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watchlist", "100ms list", "100ms watch 9"},
			wantLog: []string{"WARN Cannot list or watch the resource; retrying.", "WARN Cannot list or watch the resource; retrying.",
				"INFO Watching the resource again."},
		},
		"a streamed list without an end is read in pages": {
			script:       []answer{open(event("ADDED", "a", "1", "5")), list("9", "", pod("a", "1", "5")), open()},
			wantEvents:   []string{"LISTED a/1@5", "LISTED a/1@5", "SYNCED"},
			wantRequests: []string{"0s watchlist", "20s list", "20s watch 9"},
			wantLog:      []string{"WARN Cannot list or watch the resource; retrying.", "INFO Watching the resource again."},
		},
		"pages that expire are replaced by one request": {
			script: []answer{status(422, "Invalid"), list("8", "more", pod("a", "1", "5")), status(410, "Expired"),
				list("9", "", pod("a", "1", "5"), pod("b", "2", "6")), open()},
			wantEvents:   []string{"LISTED a/1@5", "LISTED a/1@5", "LISTED b/2@6", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s list", "0s list more", "0s list", "0s watch 9"},
			wantLog:      []string{"WARN Cannot list or watch the resource; retrying.", "INFO Watching the resource again."},
		},
		"a refused connection and a version in the future": {
			script:       []answer{closed(initialEnd("9")), broken(refused), future(), open(initialEnd("3")), open(initialEnd("3"))},
			wantEvents:   []string{"SYNCED", "SYNCED", "SYNCED"},
			wantRequests: []string{"0s watchlist", "0s watch 9", "100ms watch 9", "1.1s watchlist", "1.1s watchlist"},
			wantLog: []string{"WARN Cannot list or watch the resource; retrying.", "WARN Cannot list or watch the resource; retrying.",
				"WARN Resource versions of the API server went back, as after a restore from a backup; relisting everything.",
				"INFO Watching the resource again."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{script: c.script}
			o := observe(t, 39*time.Second, s, func(cfg *Config) {
				cfg.Known = func() iter.Seq[object.Identity] { return slices.Values(c.known) }
			})
			if diff := cmp.Diff(c.wantEvents, o.events); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantRequests, withoutProbes(o.requests)); diff != "" {
				t.Errorf("requests: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantLog, o.log); diff != "" {
				t.Errorf("log: -want +got\n%s", diff)
			}
		})
	}
}
