package engine_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/hierarchy"
	"gopf.dev/gopf/storage"
)

// What is in docs/recipes.md: functions whose names begin with "recipe" are shown
// there as they are here.

func recipeNeverAgain(examples *gopf.Resource[*Example]) {
	const mark = "example.com/never-again"
	examples.WithAnnotation(mark, gopf.Absent).OnUpdate("update", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Annotate(mark, "yes")
		return gopf.Permanent(errors.New("never call me again"))
	})
	examples.WithAnnotation(mark, gopf.Absent).Daemon("monitor", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
		<-ctx.Done() // canceled when the mark appears
		return nil
	})
}

func TestAnAnnotationExcludesAHandlerForever(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		change := func(field string) {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
			settle()
		}
		start := func() (l *lines, stop func()) {
			l = &lines{}
			op := gopf.New()
			recipeNeverAgain(gopf.For[*Example](op, resource))
			stop = gopftest.Start(t, op, c, gopf.Log(l.logger()))
			settle()
			return l, stop
		}
		l, stop := start()
		c.Create(t, example("x", "a"))
		settle()
		if !l.has("Daemon 'monitor' is invoked") {
			t.Error("the daemon was not started")
		}
		change("b")
		if !l.has("Handler 'update' failed permanently") || !l.has("Daemon 'monitor' has exited on request") {
			t.Error("the handler was not called, or the daemon still runs")
		}
		stop()

		l, _ = start() // not even after a restart
		change("c")
		if l.has("is invoked") {
			t.Error("it was called again")
		}
	})
}

// recipeMoving is for the time of the move: everything is written to both storages,
// and the old one is read where the new one has nothing yet.
func recipeMoving(op *gopf.Operator) {
	op.Settings.Persistence.Progress = storage.MultiProgress(
		storage.NewAnnotationProgress("new.example.com"),
		storage.DefaultProgress(),
	)
	op.Settings.Persistence.Base = storage.MultiBase(
		storage.NewAnnotationBase("new.example.com"),
		storage.DefaultBase(),
	)
}

// recipeMoved is for afterwards: only the new storage is written, and what the old one
// has left is removed.
func recipeMoved(op *gopf.Operator) {
	op.Settings.Persistence.Progress = storage.MultiProgress(
		storage.NewAnnotationProgress("new.example.com"),
		storage.RetiredProgress(storage.DefaultProgress()),
	)
	op.Settings.Persistence.Base = storage.NewAnnotationBase("new.example.com")
}

func TestAMoveToAnotherStorageCallsNoHandlerAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		run := func(configure func(*gopf.Operator), then func()) {
			op := gopf.New()
			configure(op)
			examples := gopf.For[*Example](op, resource)
			examples.OnCreate("create", diary.handler("create"))
			examples.OnUpdate("update", diary.handler("update"))
			stop := gopftest.Start(t, op, c)
			settle()
			then()
			settle()
			stop()
		}
		change := func(field string) func() {
			return func() {
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
			}
		}
		run(func(*gopf.Operator) {}, func() { c.Create(t, example("x", "a")) })
		run(recipeMoving, change("b"))
		run(recipeMoved, change("c"))
		run(func(op *gopf.Operator) {
			op.Settings.Persistence.Progress = storage.NewAnnotationProgress("new.example.com")
			op.Settings.Persistence.Base = storage.NewAnnotationBase("new.example.com")
		}, change("d"))
		want := []string{"create create a", "update update b", "update update c", "update update d"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("calls are %q, want %q", got, want)
		}
	})
}

// recipeOwnName gives an operator traces of its own on objects that others handle as
// well. Its name should be a domain.
func recipeOwnName(op *gopf.Operator, name string) {
	op.Settings.Persistence.Finalizer = name + "/finalizer"
	op.Settings.Persistence.Progress = storage.NewAnnotationProgress(name)
	op.Settings.Persistence.Base = storage.NewAnnotationBase(name)
	op.Settings.Peering.Name = name // it takes turns only with its own replicas
}

func TestSeveralOperatorsHandleOneKind(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		for _, name := range []string{"billing.example.com", "audit.example.com"} {
			op := gopf.New()
			recipeOwnName(op, name)
			examples := gopf.For[*Example](op, resource)
			// Both use the same ids. The work of one is not mistaken for that of the other.
			examples.On(gopf.Create|gopf.Update, "handle", diary.failing(name, 1, time.Second))
			examples.OnDelete("delete", diary.handler(name))
			gopftest.Start(t, op, c)
		}
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Minute)
		if finalizers := get(t, c, "x").GetFinalizers(); len(finalizers) != 2 {
			t.Errorf("finalizers are %q", finalizers)
		}
		c.Delete(t, resource, "default", "x")
		c.WaitGone(t, resource, "default", "x")
		settle()
		want := []string{}
		for _, name := range []string{"audit.example.com", "billing.example.com"} {
			want = append(want, name+" create a #0", name+" create a #1", name+" delete b", name+" update b #0", name+" update b #1")
		}
		got := diary.all()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("calls are\n%q, want\n%q", got, want)
		}
	})
}

// recipeParameter makes handlers that differ in a parameter only: it returns a closure.
func recipeParameter(weight int, count func(int)) gopf.ChangeFunc[*Example] {
	return func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Log.Info("The handler has a parameter.", "weight", weight)
		count(weight)
		return nil
	}
}

// recipeParameters declares them, each with an id of its own.
func recipeParameters(examples *gopf.Resource[*Example], count func(int)) {
	examples.OnCreate("create", recipeParameter(1000, count))
	examples.OnResume("resume", recipeParameter(100, count))
	for weight, path := range map[int]string{10: "spec.field", 1: "spec.items"} {
		examples.Field(path).OnUpdate("update", recipeParameter(weight, count)) // update/spec.field, update/spec.items
	}
}

func TestOneFunctionMakesManyHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		sum := 0
		start := func() (stop func()) {
			op := gopf.New()
			recipeParameters(gopf.For[*Example](op, resource), func(weight int) { sum += weight })
			stop = gopftest.Start(t, op, c)
			settle()
			return stop
		}
		expect := func(want int) {
			t.Helper()
			if settle(); sum != want {
				t.Errorf("the sum is %d, want %d", sum, want)
			}
		}
		stop := start()
		c.Create(t, example("x", "a"))
		expect(1000)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		expect(1010)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"items": []any{"i"}}})
		expect(1011)
		stop()
		start()
		expect(1111)
	})
}

// recipeWaiting waits for a child without asking for it every second: any event of a
// child makes its owner's waiting handlers due.
func recipeWaiting(op *gopf.Operator) {
	pods := gopf.For[*corev1.Pod](op, "v1/pods")
	examples := gopf.For[*Example](op, "kopf.dev/v1/kopfexamples")
	gopf.WakeOwner(pods, examples)

	examples.OnCreate("run", func(ctx context.Context, c *gopf.Change[*Example]) error {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
		if err := c.Adopt(pod, hierarchy.Strict()); err != nil {
			return gopf.Permanent(err)
		}
		if err := c.API.Apply(ctx, pod); err != nil {
			return fmt.Errorf("make the pod: %w", err)
		}
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			c.Patch.Set("status.message", "It is done.")
			return nil
		case corev1.PodFailed:
			return gopf.Permanent(errors.New("the pod has failed"))
		}
		return gopf.Wait(time.Hour, "the pod is %s", pod.Status.Phase) // or until an event of the pod
	})
}

func TestAnOwnerIsWokenByItsChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, "v1/pods")
		op := gopf.New()
		recipeWaiting(op)
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		c.PatchStatus(t, "v1/pods", "default", "x", map[string]any{"status": map[string]any{"phase": "Running"}})
		time.Sleep(time.Minute)
		if status := get(t, c, "x").Object["status"]; status != nil {
			t.Errorf("it was done too early: %v", status)
		}
		c.PatchStatus(t, "v1/pods", "default", "x", map[string]any{"status": map[string]any{"phase": "Succeeded"}})
		settle() // and not an hour later
		if got := fmt.Sprint(get(t, c, "x").Object["status"]); got != "map[message:It is done.]" {
			t.Errorf("the status is %s", got)
		}
	})
}

// recipeLevel looks at what there is and at what there should be, never at what has
// happened. So it can be called at any time: by changes, by a timer, by a child.
func recipeLevel(ctx context.Context, s *gopf.Subject[*Example]) error {
	config := &corev1.ConfigMap{Data: map[string]string{"field": s.Object.Spec.Field}}
	if err := s.Adopt(config, hierarchy.Strict()); err != nil {
		return gopf.Permanent(err)
	}
	if err := s.API.Apply(ctx, config, client.Force()); err != nil {
		return fmt.Errorf("apply the ConfigMap: %w", err)
	}
	return nil
}

// recipeLevels calls it whenever something has changed, and every ten minutes in any
// case.
func recipeLevels(op *gopf.Operator) {
	configs := gopf.For[*corev1.ConfigMap](op, "v1/configmaps")
	examples := gopf.For[*Example](op, "kopf.dev/v1/kopfexamples")
	gopf.WakeOwner(configs, examples) // which makes the timer due

	examples.On(gopf.Create|gopf.Update|gopf.Resume, "apply", func(ctx context.Context, c *gopf.Change[*Example]) error {
		return recipeLevel(ctx, c.Subject)
	})
	examples.Timer("reapply", 10*time.Minute, func(ctx context.Context, t *gopf.Tick[*Example]) error {
		return recipeLevel(ctx, t.Subject)
	}, gopf.Optional()) // no cleanup: deletions do not wait
}

func TestReconciliationRevertsChangesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, "v1/configmaps")
		op := gopf.New()
		recipeLevels(op)
		gopftest.Start(t, op, c)
		expect := func(when, want string) {
			t.Helper()
			settle()
			config, found := c.Lookup(t, "v1/configmaps", "default", "x")
			if !found || fmt.Sprint(config.Object["data"]) != "map[field:"+want+"]" {
				t.Errorf("%s, the ConfigMap is %v", when, config)
			}
		}
		c.Create(t, example("x", "a"))
		expect("after the creation", "a")
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		expect("after an update", "b")
		c.Patch(t, "v1/configmaps", "default", "x", map[string]any{"data": map[string]any{"field": "theirs"}})
		expect("after a change by others", "b")
		c.Delete(t, "v1/configmaps", "default", "x")
		expect("after a deletion by others", "b")

		before := len(c.Writes("kopfexamples", "configmaps"))
		rv := get(t, c, "x").GetResourceVersion()
		time.Sleep(time.Hour)
		synctest.Wait()
		if after := len(c.Writes("kopfexamples", "configmaps")); after-before > 7 {
			t.Errorf("%d requests in an idle hour", after-before)
		}
		if get(t, c, "x").GetResourceVersion() != rv {
			t.Error("the object was written in an idle hour")
		}
		if finalizers := get(t, c, "x").GetFinalizers(); len(finalizers) > 0 {
			t.Errorf("finalizers are %q", finalizers)
		}
	})
}

func TestRecipesAreInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("recipes_test.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "recipes_test.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, declaration := range file.Decls {
		fn, ok := declaration.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "recipe") {
			continue
		}
		found++
		code := string(source[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset])
		if !strings.Contains(string(text), code) {
			t.Errorf("docs/recipes.md does not contain this code:\n%s", code)
		}
	}
	if found < 6 {
		t.Errorf("there are only %d recipes", found)
	}
}
