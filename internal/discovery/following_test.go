package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
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
	"gopf.dev/gopf/internal/stream"
)

// cluster is a server with namespaces. It supports only paged lists.
type cluster struct {
	mu        sync.Mutex
	version   int
	uids      map[string]string // by name of the namespace
	forbidden bool
	down      bool
	watches   map[*io.PipeWriter]bool
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: body, Request: r}, nil
	}
	query := r.URL.Query()
	switch {
	case c.down:
		return nil, errors.New("connection refused")
	case c.forbidden:
		return answer(403, io.NopCloser(strings.NewReader("no")))
	case query.Has("sendInitialEvents"):
		return answer(422, io.NopCloser(strings.NewReader("what?")))
	case query.Has("watch"):
		if query.Get("resourceVersion") != fmt.Sprint(c.version) {
			return answer(410, io.NopCloser(strings.NewReader("too old")))
		}
		reader, writer := io.Pipe()
		c.watches[writer] = true
		context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
		return answer(200, reader)
	}
	items := []any{}
	for _, name := range slices.Sorted(maps.Keys(c.uids)) {
		items = append(items, c.object(name))
	}
	list, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": fmt.Sprint(c.version)}, "items": items})
	if err != nil {
		return nil, err
	}
	return answer(200, io.NopCloser(bytes.NewReader(list)))
}

func (c *cluster) object(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name, "uid": c.uids[name], "resourceVersion": fmt.Sprint(c.version)}}
}

// add creates a namespace. An existing one of that name gets a new uid.
func (c *cluster) add(name string) { c.change("ADDED", name) }

// remove deletes a namespace.
func (c *cluster) remove(name string) { c.change("DELETED", name) }

func (c *cluster) change(how, name string) {
	c.mu.Lock()
	c.version++
	if how == "ADDED" {
		c.uids[name] = fmt.Sprintf("uid-%d", c.version)
	}
	event, _ := json.Marshal(map[string]any{"type": how, "object": c.object(name)})
	if how == "DELETED" {
		delete(c.uids, name)
	}
	watches := slices.Collect(maps.Keys(c.watches))
	c.mu.Unlock()
	for _, w := range watches {
		_, _ = w.Write(event) // the reader may be gone
	}
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

// cut breaks all connections. The server does not respond until meanwhile returns.
func (c *cluster) cut(meanwhile func()) {
	c.mu.Lock()
	for w := range c.watches {
		_ = w.Close() // a pipe never fails to close
	}
	c.watches, c.down = map[*io.PipeWriter]bool{}, true
	c.mu.Unlock()
	meanwhile()
	c.mu.Lock()
	c.down = false
	c.mu.Unlock()
	time.Sleep(12 * time.Second)
	synctest.Wait()
}

func (c *cluster) forbid(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden = yes
}

// followed records the calls of Serve and Complete.
type followed struct {
	mu       sync.Mutex
	told     []string
	complete int
}

// served returns the calls of Serve since the last time.
func (f *followed) served() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.told
	f.told = nil
	return calls
}

func following(t *testing.T, c *cluster, patterns Namespaces, test func(*followed)) {
	synctest.Test(t, func(t *testing.T) {
		c.uids, c.watches = map[string]string{}, map[*io.PipeWriter]bool{}
		c.add("kube-system")
		c.add("app-1")
		client, err := kube.NewClient(&rest.Config{Host: "http://cluster", Transport: c}, kube.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		told := &followed{}
		config := stream.DefaultConfig(namespaces, "")
		config.ProbeAfter, config.InactivityTimeout = 0, 0
		f := &Following{Client: client, Stream: config, Patterns: patterns, Log: slog.New(slog.DiscardHandler),
			Serve: func(names []string, exist bool) {
				told.mu.Lock()
				defer told.mu.Unlock()
				told.told = append(told.told, map[bool]string{true: "+", false: "-"}[exist]+strings.Join(names, ","))
			},
			Complete: func() {
				told.mu.Lock()
				defer told.mu.Unlock()
				told.complete++
			}}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { f.Run(ctx) })
		time.Sleep(time.Second)
		synctest.Wait()
		test(told)
		cancel()
		done.Wait()
	})
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

func TestNamespacesAreServedUntilShortlyAfterTheirDeletion(t *testing.T) {
	c := &cluster{}
	following(t, c, Namespaces{Globs("app-*")}, func(f *followed) {
		expect(t, "at first", f.served(), "+app-1")
		c.add("app-2")
		c.add("other")
		expect(t, "later", f.served(), "+app-2")
		c.remove("app-1")
		c.remove("other")
		expect(t, "just gone", f.served())
		time.Sleep(leaveDelay)
		synctest.Wait()
		expect(t, "gone for a while", f.served(), "-app-1")
		c.add("app-1")
		expect(t, "come back", f.served(), "+app-1")
		c.remove("app-2")
		c.add("app-2")
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "replaced at once", f.served())
	})
}

func TestMissedDeletionsOfNamespacesAreDetected(t *testing.T) {
	c := &cluster{}
	following(t, c, Namespaces{Globs("app-*")}, func(f *followed) {
		c.add("app-2")
		f.served()
		c.cut(func() { c.remove("app-1"); c.remove("app-2"); c.add("app-2"); c.add("app-3") })
		expect(t, "after the gap", f.served(), "+app-3", "-app-1")
	})
}

func TestNamespacesMayBeForbiddenAndAllowedAtAnyTime(t *testing.T) {
	c := &cluster{forbidden: true}
	following(t, c, Namespaces{Globs("app-*"), Globs("plain"), Regexp(regexp.MustCompile("app-[12]"))}, func(f *followed) {
		expect(t, "forbidden", f.served(), "+plain")
		if f.complete != 1 {
			t.Errorf("Complete was called %d times", f.complete)
		}
		c.forbid(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expect(t, "allowed", f.served(), "+app-1")
		c.forbid(true)
		c.cut(func() {})
		expect(t, "forbidden again", f.served())
		c.remove("app-1")
		c.forbid(false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		expect(t, "allowed again", f.served(), "-app-1")
	})
}

func TestTerminatingNamespacesAreServedUntilTheyAreEmpty(t *testing.T) {
	body := func(conditions ...string) *object.Body {
		list := []any{}
		for _, status := range conditions {
			list = append(list, map[string]any{"status": status, "reason": "SomeResourcesRemain", "message": "wait"})
		}
		b, err := object.FromMap(map[string]any{
			"metadata": map[string]any{"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": map[string]any{"conditions": list}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	blocked := []Blocker{{"SomeResourcesRemain", "wait"}}
	for name, c := range map[string]struct {
		event stream.Event
		want  Verdict
	}{
		"deletion requested":       {stream.Event{Type: kube.Modified, Body: body()}, Verdict{Served: true}},
		"not empty":                {stream.Event{Type: kube.Modified, Body: body("False", "True")}, Verdict{true, blocked}},
		"not empty at start":       {stream.Event{Type: kube.Listed, Body: body("True")}, Verdict{true, blocked}},
		"empty":                    {stream.Event{Type: kube.Modified, Body: body("False", "False")}, Verdict{}},
		"deleted, stale condition": {stream.Event{Type: kube.Deleted, Body: body("True")}, Verdict{}},
		"deletion missed":          {stream.Event{Type: kube.Deleted, Body: body(), Missed: true}, Verdict{}},
	} {
		if diff := cmp.Diff(c.want, JudgeNamespace(c.event)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestPatternsRequireWatchingNamespaces(t *testing.T) {
	if err := (Namespaces{Globs("a"), Globs("b")}).RequireFixed(); err != nil {
		t.Error(err)
	}
	for pattern, ns := range map[string]Namespaces{
		`"app-*"`: {Globs("a"), Globs("app-*")}, `"a|b"`: {Regexp(regexp.MustCompile("a|b"))},
	} {
		if err := ns.RequireFixed(); err == nil || !strings.Contains(err.Error(), pattern) {
			t.Errorf("%s: got %v", pattern, err)
		}
	}
}

func TestOnlyPlainNamesNameANamespace(t *testing.T) {
	ns := Namespaces{Globs("app"), Globs("team-*"), Regexp(regexp.MustCompile("lab"))}
	for name, want := range map[string]bool{"app": true, "team-1": false, "team-*": false, "lab": false, "": false} {
		if got := ns.Names(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
