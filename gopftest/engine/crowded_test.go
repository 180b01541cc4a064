package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// crowd is a cluster with many namespaces of one operator, app-00 and so on, and with
// one of another. Each has one object with the name of its namespace.
type crowd struct {
	*gopftest.Cluster
	t      *testing.T
	denied atomic.Bool
}

func newCrowd(t *testing.T, c *gopftest.Cluster, namespaces int) *crowd {
	w := &crowd{Cluster: c, t: t}
	for i := range namespaces {
		w.add(fmt.Sprintf("app-%02d", i))
	}
	w.add("other")
	return w
}

// add creates a namespace with an object.
func (w *crowd) add(namespace string) {
	w.CreateNamespace(w.t, namespace)
	w.object(namespace, namespace)
}

func (w *crowd) object(namespace, name string) {
	x := example(name, "1")
	x.SetNamespace(namespace)
	w.Create(w.t, x)
}

// change updates the object of a namespace.
func (w *crowd) change(namespace, field string) {
	w.Patch(w.t, resource, namespace, namespace, map[string]any{"spec": map[string]any{"field": field}})
}

// follows returns the number of lists of the objects since the start.
func (w *crowd) follows() string {
	wide, narrow := 0, 0
	for _, r := range w.Requests() {
		switch {
		case r.Resource != "kopfexamples" || !strings.Contains(r.Path, "limit=500") && !strings.Contains(r.Path, "sendInitialEvents=true"):
		case r.Namespace == "":
			wide++
		default:
			narrow++
		}
	}
	return fmt.Sprintf("%d of the cluster, %d of namespaces", wide, narrow)
}

// deny forbids to list and watch the objects of the whole cluster, until lift is called.
func (w *crowd) deny() (lift func()) {
	w.denied.Store(true)
	lifts := []func(){w.Deny("list", "kopfexamples", "-"), w.Deny("watch", "kopfexamples", "-")}
	return func() {
		w.denied.Store(false)
		for _, lift := range lifts {
			lift()
		}
	}
}

// start starts the operator in the namespaces.
func (w *crowd) start(op *gopf.Operator, namespaces ...string) {
	cfg := w.RESTConfig()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return reviews{rt, &w.denied} })
	gopftest.Start(w.t, op, w.Cluster, gopf.Cluster(cfg), gopf.Namespaces(namespaces...), gopf.Log(quiet()))
}

// reviews answers access reviews, which the in-memory cluster does not serve.
type reviews struct {
	http.RoundTripper
	denied *atomic.Bool // for the whole cluster
}

func (r reviews) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/selfsubjectaccessreviews") {
		return r.RoundTripper.RoundTrip(req)
	}
	asked, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	denied := r.denied.Load() && strings.Contains(string(asked), `"resource":"kopfexamples"`) && !strings.Contains(string(asked), `"namespace":`)
	body := fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","metadata":{},"status":{"allowed":%v}}`, !denied)
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

// crowdOperator records the calls of its handlers as "create app-00/x 1".
func crowdOperator(diary *calls) *gopf.Operator {
	op := gopf.New()
	x := gopf.For[*Example](op, resource)
	note := func(_ context.Context, c *gopf.Change[*Example]) error {
		diary.add("%s %s/%s %s", c.Reason, c.Object.Namespace, c.Object.Name, c.Object.Spec.Field)
		return nil
	}
	x.OnCreate("c", note)
	x.OnUpdate("u", note)
	x.OnResume("r", note)
	x.OnDelete("d", note)
	return op
}

// take returns the calls since the last time, sorted.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := slices.Sorted(slices.Values(c.lines))
	c.lines = nil
	return lines
}

func creations(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("create app-%02d/app-%02d 1", i, i))
	}
	return all
}

func expectCalls(t *testing.T, when string, diary *calls, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, diary.take()); diff != "" {
		t.Errorf("%s: -want +got\n%s", when, diff)
	}
}

func (w *crowd) expectFollows(when, want string) {
	w.t.Helper()
	if got := w.follows(); got != want {
		w.t.Errorf("%s: the operator lists and watches %s, want %s", when, got, want)
	}
}

const crowded = 60

func TestOneWatchServesManyNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		expectCalls(t, "at first", diary, creations(crowded)...)
		w.change("app-07", "2")
		w.change("other", "2")
		settle()
		expectCalls(t, "after changes", diary, "update app-07/app-07 2")
		w.expectFollows("at the end", "1 of the cluster, 0 of namespaces")
	})
}

func TestFewNamespacesAreWatchedSeparately(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, 50), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		expectCalls(t, "at first", diary, creations(50)...)
		w.expectFollows("at the end", "0 of the cluster, 50 of namespaces")
	})
}

func TestOneWatchServesManyNamesOfNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		var names []string
		for i := range crowded {
			names = append(names, fmt.Sprintf("app-%02d", i))
		}
		w.start(crowdOperator(diary), names...)
		settle()
		expectCalls(t, "at first", diary, creations(crowded)...)
		w.expectFollows("at the end", "1 of the cluster, 0 of namespaces")
	})
}

func TestNamespacesComeAndGoUnderOneWatch(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		diary.take()
		for range 2 { // the second time, the namespace comes back
			w.add("app-late")
			w.add("elsewhere")
			settle()
			expectCalls(t, "after a namespace came", diary, "create app-late/app-late 1")
			w.change("app-late", "2")
			w.object("app-late", "second")
			settle()
			expectCalls(t, "after changes in it", diary, "create app-late/second 1", "update app-late/app-late 2")
			c.Delete(t, "v1/namespaces", "", "app-late")
			c.Delete(t, "v1/namespaces", "", "elsewhere")
			settle()
			expectCalls(t, "after it was deleted", diary, "delete app-late/app-late 2", "delete app-late/second 1")
			time.Sleep(time.Minute)
		}
		w.change("app-07", "2")
		settle()
		expectCalls(t, "of the others", diary, "update app-07/app-07 2")
		w.expectFollows("at the end", "1 of the cluster, 2 of namespaces")
	})
}

// The list of an added namespace fails at first. The events of the others arrive
// meanwhile, and those of the namespace are not lost.
func TestTheListOfANamespaceThatComesIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		diary.take()
		lift := c.Deny("list", "kopfexamples", "app-late")
		w.add("app-late")
		time.Sleep(20 * time.Second)
		w.change("app-late", "2")
		w.change("app-07", "2")
		time.Sleep(20 * time.Second)
		expectCalls(t, "while the list fails", diary, "update app-07/app-07 2")
		lift()
		time.Sleep(20 * time.Second)
		expectCalls(t, "afterwards", diary, "create app-late/app-late 2")
		w.change("app-late", "3")
		settle()
		expectCalls(t, "after a change", diary, "update app-late/app-late 3")
	})
}

func TestOneWatchRelistsAfterAGap(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		op := crowdOperator(diary)
		gopf.For[*Example](op, resource).OnEvent("e", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			if e.Type == "DELETED" {
				diary.add("gone %s/%s", e.Object.Namespace, e.Object.Name)
			}
			return nil
		})
		w.start(op, "app-*")
		settle()
		diary.take()
		down := c.Fault(gopftest.Requests("watch", "kopfexamples").From(1), gopftest.Fail(503))
		c.CutStreams()
		c.Expire()
		w.change("app-07", "2")
		w.change("other", "2")
		c.Patch(t, resource, "app-08", "app-08", map[string]any{"metadata": map[string]any{"finalizers": nil}})
		c.Delete(t, resource, "app-08", "app-08")
		w.object("app-09", "new")
		down.Stop()
		time.Sleep(time.Minute)
		expectCalls(t, "after the gap", diary, "create app-09/new 1", "gone app-08/app-08", "update app-07/app-07 2")
	})
}

func TestWithoutPermissionForTheClusterEachNamespaceIsWatched(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		lift := w.deny()
		w.start(crowdOperator(diary), "app-*")
		settle()
		expectCalls(t, "at first", diary, creations(crowded)...)
		w.expectFollows("without the permission", fmt.Sprintf("0 of the cluster, %d of namespaces", crowded))
		lift()
		time.Sleep(6 * time.Minute)
		w.expectFollows("with the permission", fmt.Sprintf("1 of the cluster, %d of namespaces", crowded))
		expectCalls(t, "after the watches were replaced", diary)
		w.change("app-07", "2")
		w.change("other", "2")
		settle()
		expectCalls(t, "after changes", diary, "update app-07/app-07 2")
	})
}

// The API server may not serve access reviews. Then the operator tries the watch of the
// cluster, once.
func TestWithoutAccessReviewsTheWatchOfTheClusterIsTried(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		w.deny()
		gopftest.Start(t, crowdOperator(diary), c, gopf.Namespaces("app-*"), gopf.Log(quiet()))
		time.Sleep(30 * time.Second)
		expectCalls(t, "at first", diary, creations(crowded)...)
		before := w.follows()
		time.Sleep(20 * time.Minute)
		w.change("app-07", "2")
		settle()
		expectCalls(t, "after a change", diary, "update app-07/app-07 2")
		if after := w.follows(); after != before {
			t.Errorf("lists and watches: %s, later %s", before, after)
		}
	})
}

func TestThePermissionForTheClusterIsRevokedAndGrantedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		diary.take()
		lift := w.deny()
		c.CutStreams()
		w.change("app-07", "2")
		w.object("app-08", "new")
		w.add("app-late")
		time.Sleep(30 * time.Second)
		expectCalls(t, "after the permission was revoked", diary, "create app-08/new 1", "create app-late/app-late 1", "update app-07/app-07 2")
		lift()
		time.Sleep(6 * time.Minute)
		expectCalls(t, "after it was granted again", diary)
		before := w.follows()
		w.change("app-07", "3")
		w.add("app-later")
		settle()
		expectCalls(t, "after changes", diary, "create app-later/app-later 1", "update app-07/app-07 3")
		var wide, narrow int
		if _, err := fmt.Sscanf(before, "%d of the cluster, %d of namespaces", &wide, &narrow); err != nil || narrow < crowded {
			t.Errorf("lists and watches: %s", before)
		}
		w.expectFollows("after a namespace came", fmt.Sprintf("%d of the cluster, %d of namespaces", wide, narrow+1))
	})
}

// A short refusal, as of an API server that has just started, changes nothing.
func TestABriefRefusalKeepsTheWatchOfTheCluster(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		diary.take()
		lift := w.deny()
		c.CutStreams()
		time.Sleep(3 * time.Second)
		lift()
		w.change("app-07", "2")
		time.Sleep(time.Minute)
		expectCalls(t, "after the refusal", diary, "update app-07/app-07 2")
		if got := w.follows(); !strings.HasSuffix(got, " 0 of namespaces") {
			t.Errorf("lists and watches: %s", got)
		}
	})
}

func TestOneWatchReplacesThoseOfAGrowingNumberOfNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, 40), &calls{}
		w.start(crowdOperator(diary), "app-*")
		settle()
		expectCalls(t, "at first", diary, creations(40)...)
		for i := 40; i < crowded; i++ {
			w.add(fmt.Sprintf("app-%02d", i))
		}
		settle()
		expectCalls(t, "after more came", diary, creations(crowded)[40:]...)
		for i := range crowded {
			w.change(fmt.Sprintf("app-%02d", i), "2")
		}
		settle()
		if got := diary.take(); len(got) != crowded {
			t.Errorf("%d calls for %d changes", len(got), crowded)
		}
		if got := w.follows(); !strings.HasPrefix(got, "1 of the cluster") {
			t.Errorf("lists and watches: %s", got)
		}
	})
}

func TestManyNamespacesArePausedAndIndexed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		w, diary := newCrowd(t, c, crowded), &calls{}
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		index := gopf.Collect(x, "all", func(_ context.Context, s *gopf.Subject[*Example]) (string, bool, error) {
			return s.Object.Namespace, true, nil
		})
		x.OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("create %s with %d", ch.Object.Namespace, index.Count(struct{}{}))
			return nil
		})
		w.start(op, "app-*")
		settle()
		got := diary.take()
		if len(got) != crowded || !strings.HasSuffix(got[0], fmt.Sprintf("with %d", crowded)) {
			t.Fatalf("at first: got %d calls: %q", len(got), got[:min(len(got), 3)])
		}
		op.Pause("a test")
		settle()
		w.add("app-late")
		settle()
		expectCalls(t, "during a pause", diary)
		op.Unpause()
		settle()
		expectCalls(t, "after the pause", diary, fmt.Sprintf("create app-late with %d", crowded+1))
		c.Delete(t, "v1/namespaces", "", "app-late")
		time.Sleep(time.Minute)
		w.add("app-last")
		settle()
		expectCalls(t, "after a namespace left the index", diary, fmt.Sprintf("create app-last with %d", crowded+1))
	})
}
