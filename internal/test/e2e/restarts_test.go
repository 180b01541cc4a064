package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestARestartDoesNotCallAgain(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	objects.create("old", nil)
	called := &calls{}
	first := run(t, greeter(called), gopf.Namespaces(objects.namespace))
	objects.awaitHandled("old")
	first.Stop()
	before := objects.get("old")

	second := run(t, greeter(called), gopf.Namespaces(objects.namespace))
	second.Log.WaitFor(t, "/old] Resuming is in progress")
	objects.create("new", nil)
	objects.awaitHandled("new")
	second.Stop()

	want := []string{objects.namespace + "/old", objects.namespace + "/new"}
	if diff := cmp.Diff(want, called.all()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
	if after := objects.get("old"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("it was written to:\n%s", cmp.Diff(before.Object, after.Object))
	}
}

func TestANewIdentityTakesOver(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	objects.create("old", nil)
	called := newLogbook(t)
	declare := func(opts ...gopf.Option) *gopf.Operator {
		op := gopf.New(opts...)
		record := func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
			_, err := fmt.Fprintln(called, c.Reason)
			return err
		}
		x := op.Resource("kopfexamples")
		x.OnCreate("create", record)
		x.OnUpdate("update", record)
		x.OnDelete("delete", record)
		return op
	}
	first := run(t, declare(), gopf.Namespaces(objects.namespace))
	objects.awaitHandled("old")
	first.Stop()
	before := objects.get("old")

	second := run(t, declare(gopf.Identity("new.example.com", gopf.FormerlyNamed(""))), gopf.Namespaces(objects.namespace))
	second.Log.WaitFor(t, "/old] Resuming is in progress")
	if after := objects.get("old"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("it was written to:\n%s", cmp.Diff(before.Object, after.Object))
	}
	change := []byte(`{"spec":{"field":"changed"}}`)
	if _, err := objects.client().Patch(objects.ctx(), "old", types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the state is moved", func() bool {
		o := objects.get("old")
		return !objects.handled("old") && o.GetAnnotations()["new.example.com/last-handled-configuration"] != "" &&
			slices.Equal(o.GetFinalizers(), []string{"new.example.com/finalizer"})
	})
	objects.delete("old")
	kit.Await(t, "the object is gone", func() bool { return objects.get("old") == nil })
	second.Stop()
	if diff := cmp.Diff("create\nupdate\ndelete\n", called.String()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
}

func TestAKilledOperatorDoesNotCallAgain(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	calls := newRecording(t)
	objects.create("old", nil)
	for range 2 {
		p := startOperator(t, "greeting", calls.env(), "run", "--verbose", "--namespace", objects.namespace)
		p.Log.WaitFor(t, "/old] ", "is in progress")
		objects.awaitHandled("old")
		p.Signal(os.Kill)
		p.Wait()
	}
	last := startOperator(t, "greeting", calls.env(), "run", "--verbose", "--namespace", objects.namespace)
	last.Log.WaitFor(t, "/old] Resuming is in progress")
	objects.create("new", nil)
	objects.awaitHandled("new")
	last.Signal(syscall.SIGTERM)
	if code := last.Wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	if diff := cmp.Diff([]string{"old", "new"}, calls.calls()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
}

func TestAnOperatorKilledInAHandlerCallsItAgain(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	calls := newRecording(t)
	objects.create("example", nil)
	hanging := startOperator(t, "hanging", calls.env(), "run", "--namespace", objects.namespace)
	kit.Await(t, "the handler is called", func() bool { return len(calls.calls()) > 0 })
	hanging.Signal(os.Kill)
	if code := hanging.Wait(); code != -1 {
		t.Errorf("got exit code %d", code)
	}
	startOperator(t, "greeting", calls.env(), "run", "--namespace", objects.namespace)
	objects.awaitHandled("example")
	if diff := cmp.Diff([]string{"example", "example"}, calls.calls()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
}

func TestAHandlerMayFinishWhileTheOperatorStops(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	begun, finish := make(chan struct{}), make(chan struct{})
	op := gopf.New()
	op.Settings.Queueing.ExitTimeout = kit.Patience // the test decides when the handler returns
	op.Resource("kopfexamples").OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		close(begun)
		select {
		case <-finish:
		case <-ctx.Done():
			return errors.New("it was cancelled")
		}
		c.SetResult(map[string]string{"message": "done"})
		return nil
	})
	operator := run(t, op, gopf.Namespaces(objects.namespace))
	objects.create("example", nil)
	kit.Await(t, "the handler is called", func() bool {
		select {
		case <-begun:
			return true
		default:
			return false
		}
	})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		operator.Stop()
	}()
	operator.Log.WaitFor(t, "The operator is stopping.")
	close(finish)
	<-stopped
	want := map[string]any{"create_fn": map[string]any{"message": "done"}}
	if diff := cmp.Diff(want, objects.get("example").Object["status"]); diff != "" {
		t.Errorf("status: -want +got\n%s", diff)
	}
	if !objects.handled("example") {
		t.Error("the object is not recorded as handled")
	}
}

func TestWhatIsDeletedWhileTheOperatorIsDownIsNoTrouble(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	objects.create("deleted", nil)
	objects.create("recreated", nil)
	called := &calls{}
	first := run(t, greeter(called), gopf.Namespaces(objects.namespace))
	objects.awaitHandled("deleted")
	objects.awaitHandled("recreated")
	first.Stop()
	for _, name := range []string{"deleted", "recreated"} {
		objects.delete(name)
		kit.Await(t, name+" is gone", func() bool { return objects.get(name) == nil })
	}
	objects.create("recreated", nil)

	second := run(t, greeter(called), gopf.Namespaces(objects.namespace))
	objects.awaitHandled("recreated")
	objects.create("new", nil)
	objects.awaitHandled("new")
	for _, level := range []string{"[WARNING ]", "[ERROR   ]"} {
		// Other lines may be about kinds that other tests define and remove.
		if lines := second.Log.With(level, objects.namespace); len(lines) > 0 {
			t.Errorf("trouble: %q", lines)
		}
	}
	second.Stop()
	want := []string{objects.namespace + "/recreated", objects.namespace + "/new"}
	if diff := cmp.Diff(want, called.all()[2:]); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
	if lines := second.Log.With("/deleted]"); len(lines) > 0 {
		t.Errorf("lines about what is gone: %q", lines)
	}
}
