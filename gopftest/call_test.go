package gopftest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const examples = "kopf.dev/v1/kopfexamples"

type exampleSpec struct {
	Size int    `json:"size,omitempty"`
	Name string `json:"name,omitempty"`
}

type example struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              exampleSpec    `json:"spec"`
	Status            map[string]any `json:"status,omitempty"`
}

func newExample(name string, size int) *example {
	return &example{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kopf.dev/v1", Kind: "KopfExample"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       exampleSpec{Size: size},
	}
}

// both runs a test in virtual time and in real time.
func both(t *testing.T, test func(t *testing.T, c *gopftest.Cluster)) {
	t.Helper()
	t.Run("virtual time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, gopftest.NewCluster(t, examples)) })
	})
	t.Run("real time", func(t *testing.T) { test(t, gopftest.NewCluster(t, examples)) })
}

func TestChangeReturnsTheObjectInTheCluster(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3))
		if call.Reason != gopf.Create || call.Object.UID == "" || call.Object.Spec.Size != 3 || call.Resource.Plural != "kopfexamples" || call.Retry != 0 {
			t.Errorf("called with %s, %+v of %s", call.Reason, call.Object, call.Resource)
		}
		if len(call.Diff) == 0 || call.Old == nil {
			t.Errorf("want a diff and a non-nil old state: %v, %v", call.Diff, call.Old)
		}
	})
}

func TestApplyWritesTheChangesOfTheHandler(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3), gopftest.HandlerID("create"))
		handler := func(_ context.Context, ch *gopf.Change[*example]) error {
			ch.Patch.Label("x", "y")
			ch.Patch.MergeStatus(map[string]any{"phase": "Ready"})
			ch.Patch.Edit(func(e *example) { e.Spec.Size++ })
			ch.SetResult(map[string]any{"id": 7})
			return nil
		}
		if err := handler(t.Context(), call.Change); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"id": 7}, call.Result()); diff != "" {
			t.Error(diff)
		}
		after := call.Apply()
		stored := gopftest.Get[*example](t, c, examples, "default", "a")
		for _, e := range []*example{after, stored} {
			if e.Labels["x"] != "y" || e.Spec.Size != 4 {
				t.Errorf("not written: %+v", e)
			}
			if diff := cmp.Diff(map[string]any{"phase": "Ready", "create": map[string]any{"id": int64(7)}}, e.Status); diff != "" {
				t.Error(diff)
			}
		}
		if n := c.Count(gopftest.Writes("kopfexamples")); n != 2 {
			t.Errorf("made %d writes, want 2: the status and the rest", n)
		}
	})
}

func TestUpdatesHaveADiff(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3), gopftest.Was(newExample("a", 2)))
		if call.Reason != gopf.Update || call.Old.Spec.Size != 2 || len(call.Diff) != 1 || call.Diff[0].String() == "" {
			t.Errorf("%s from %+v by %v", call.Reason, call.Old, call.Diff)
		}
		field := gopftest.Change(t, c, newExample("a", 3), gopftest.Was(newExample("a", 2)), gopftest.AboutField("spec.size"))
		was, _ := field.OldValue()
		is, _ := field.NewValue()
		if was != int64(2) || is != int64(3) {
			t.Errorf("the field was %v and is %v", was, is)
		}
	})
}

func TestDeletionsMarkTheObjectAsDeleted(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3), gopftest.Because(gopf.Delete))
		if call.Reason != gopf.Delete || call.Object.DeletionTimestamp == nil || len(call.Diff) != 0 {
			t.Errorf("%s of %+v, %v", call.Reason, call.Object, call.Diff)
		}
	})
}

func TestTriedSetsTheRetryCount(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3), gopftest.Tried(3, time.Hour))
		if call.Retry != 3 || time.Since(call.Started) < time.Hour {
			t.Errorf("%d attempts since %s", call.Retry, call.Started)
		}
	})
}

func TestRunCallsSubHandlersAndReturnsErrors(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 2), gopftest.HandlerID("create"))
		err := call.Run(func(_ context.Context, ch *gopf.Change[*example]) error {
			for _, id := range []string{"one", "two"} {
				ch.Sub(id, func(_ context.Context, sub *gopf.Change[*example]) error {
					sub.Patch.Annotate(id, "done")
					return nil
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := gopftest.Get[*example](t, c, examples, "default", "a").Annotations; got["one"] != "done" || got["two"] != "done" {
			t.Errorf("sub-handlers wrote %v", got)
		}

		wrong := errors.New("wrong")
		err = call.Run(func(_ context.Context, ch *gopf.Change[*example]) error {
			ch.SetResult("dropped")
			ch.Patch.Label("kept", "yes")
			return gopf.Permanent(wrong)
		})
		var permanent *gopf.PermanentError
		if !errors.Is(err, wrong) || !errors.As(err, &permanent) {
			t.Errorf("the error is %v", err)
		}
		after := gopftest.Get[*example](t, c, examples, "default", "a")
		if after.Labels["kept"] != "yes" || after.Status["create"] != nil {
			t.Errorf("a failed handler left %+v", after)
		}
		if err := call.Run(func(context.Context, *gopf.Change[*example]) error { panic("ouch") }); err == nil || !strings.Contains(err.Error(), "ouch") {
			t.Errorf("a panic was returned as %v", err)
		}
		err = call.Run(func(_ context.Context, ch *gopf.Change[*example]) error {
			ch.Sub("never", func(context.Context, *gopf.Change[*example]) error { return gopf.RetryAfter(time.Hour, wrong) })
			return nil
		})
		if err == nil {
			t.Error("an unfinished sub-handler returned no error")
		}
	})
}

func TestCallsReturnEventsLogLinesAndMemos(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3))
		call.Event(gopf.Normal, "Made", "it is made")
		call.Event(gopf.Warning, "Odd", "it is odd")
		call.Log.Info("Something was done.", "n", 1)
		want := []gopftest.Posted{{"Normal", "Made", "it is made"}, {"Warning", "Odd", "it is odd"}}
		if diff := cmp.Diff(want, call.Posted()); diff != "" {
			t.Error(diff)
		}
		if n := len(c.List(t, "v1/events", "default")); n != 2 {
			t.Errorf("%d events are in the cluster", n)
		}
		if !slices.ContainsFunc(call.Logged(), func(line string) bool { return strings.Contains(line, "Something was done. n=1") }) {
			t.Errorf("logged is %q", call.Logged())
		}
		type counter struct{ n int }
		gopf.Memo[counter](call.Change).n++
		again := gopftest.Event(t, c, "MODIFIED", newExample("a", 3))
		if gopf.Memo[counter](again).n != 1 || again.Type != "MODIFIED" {
			t.Errorf("two calls for one object have different memos")
		}
		if gopf.Memo[counter](gopftest.Subject(t, c, newExample("b", 3))).n != 0 {
			t.Errorf("calls for different objects share a memo")
		}
	})
}

func TestHandlersReachTheCluster(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Change(t, c, newExample("a", 3))
		client, err := dynamic.NewForConfig(call.API.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		child := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "child"}}}
		_, err = client.Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}).
			Namespace("default").Create(t.Context(), child, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Lookup(t, examples, "default", "child"); !ok || c.Count(gopftest.Requests("create", "kopfexamples")) != 1 {
			t.Errorf("the object created by the handler is missing in the cluster or in the request log")
		}
	})
}

func TestDaemonsAreCalledAndStopped(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Daemon(t, c, newExample("a", 3))
		done := make(chan error, 1)
		go func() {
			d := call.Daemon
			d.Patch.Label("alive", "yes")
			if err := d.Flush(call.Context()); err != nil {
				done <- err
				return
			}
			<-d.Stopping()
			<-call.Context().Done()
			done <- nil
		}()
		c.Wait(t, examples, "default", "a", func(u *unstructured.Unstructured) bool { return u.GetLabels()["alive"] == "yes" })
		c.Patch(t, examples, "default", "a", `{"spec":{"size":4}}`)
		call.See()
		if size := call.Current().Spec.Size; size != 4 || call.Object.Spec.Size != 3 {
			t.Errorf("the current size is %d, that at the start %d", size, call.Object.Spec.Size)
		}
		call.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTimersAreCalled(t *testing.T) {
	both(t, func(t *testing.T, c *gopftest.Cluster) {
		call := gopftest.Tick(t, c, newExample("a", 3), gopftest.Tried(2, time.Minute), gopftest.HandlerID("tick"))
		func(tick *gopf.Tick[*example]) {
			tick.Next(time.Second)
			tick.SetResult(tick.Retry)
		}(call.Tick)
		if after := call.Apply(); after.Status["tick"] != int64(2) {
			t.Errorf("the result is %v", after.Status)
		}
	})
}

func TestFillAddsValuesToAnIndex(t *testing.T) {
	op := gopf.New()
	names := gopf.Index(gopf.For[*example](op, examples), "names", func(_ context.Context, s *gopf.Subject[*example]) (map[string]int, error) {
		return map[string]int{s.Object.Name: s.Object.Spec.Size}, nil
	})
	gopftest.Fill(names, "a", 1, 2)
	gopftest.Fill(names, "a", 3)
	gopftest.Fill(names, "b", 4)
	got := slices.Sorted(names.Get("a"))
	if diff := cmp.Diff([]int{1, 2, 3}, got); diff != "" || names.Len() != 2 {
		t.Errorf("%s, %d keys", diff, names.Len())
	}
}

func TestCallsReportLostEdits(t *testing.T) {
	edit := func(_ context.Context, c *gopf.Change[*example]) error {
		c.Object.Spec.Size++
		return nil
	}
	const want = "Handler 'handler' modified c.Object (spec.size); such edits are lost. Use c.Patch."
	for name, run := range map[string]func(*gopftest.ChangeCall[*example]) error{
		"run": func(call *gopftest.ChangeCall[*example]) error { return call.Run(edit) },
		"direct": func(call *gopftest.ChangeCall[*example]) error {
			defer call.Apply()
			return edit(t.Context(), call.Change)
		},
	} {
		call := gopftest.Change(t, gopftest.NewCluster(t, examples), newExample("x", 1))
		if err := run(call); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(call.Logged(), "\n"); strings.Count(got, want) != 1 {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
