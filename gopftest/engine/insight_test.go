package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/insight"
)

// commands returns the commands about objects of the operator.
func commands(t *testing.T, c *gopftest.Cluster, op *gopf.Operator) *insight.Operator {
	t.Helper()
	o, err := gopf.TestSeam{}.Insight(op, gopf.Cluster(c.RESTConfig()), gopf.Log(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func objectNamed(name string) insight.Name {
	return insight.Name{Kind: "kopfexample", Name: name, Namespace: "default"}
}

// explained returns the report about an object.
func explained(t *testing.T, c *gopftest.Cluster, op *gopf.Operator, name string) (report *explain.Report) {
	t.Helper()
	err := commands(t, c, op).Explain(t.Context(), objectNamed(name), false, func(r *explain.Report) error {
		report = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func handlerOf(t *testing.T, r *explain.Report, id string) explain.Handler {
	t.Helper()
	i := slices.IndexFunc(r.Handlers, func(h explain.Handler) bool { return h.ID == id })
	if i < 0 {
		t.Fatalf("no handler %s in %+v", id, r.Handlers)
	}
	return r.Handlers[i]
}

func pausing(t *testing.T, c *gopftest.Cluster, op *gopf.Operator, p insight.Pausing) {
	t.Helper()
	p.Out = &bytes.Buffer{}
	if err := commands(t, c, op).Pause(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestExplainNamesTheCauseWhileTheOperatorIsDown(t *testing.T) {
	var text string
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New(gopf.Identity("things.example.com"))
		x := gopf.For[*Example](op, resource)
		x.OnCreate("provision", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.OnCreate("backup", func(context.Context, *gopf.Change[*Example]) error {
			return gopf.RetryAfter(10*time.Minute, errors.New("connection refused"))
		})
		x.WithLabel("tier", gopf.Is("prod")).OnCreate("audit", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.WithField("spec.field", gopf.Not(gopf.Is("a"))).OnCreate("grow", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.When(func(*gopf.Candidate[*Example]) bool { return false }).OnCreate("never", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.OnUpdate("update", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.OnDelete("drop", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.OnEvent("event", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
		x.Timer("check", time.Hour, func(context.Context, *gopf.Tick[*Example]) error { return nil })
		obj := example("x", "a")
		obj.SetLabels(map[string]string{"tier": "dev"})
		obj.SetFinalizers([]string{"other.io/guard"})
		runs(t, c, op, func() { c.Create(t, obj) })

		before := len(c.Requests())
		r := explained(t, c, op, "x")
		for _, request := range c.Requests()[before:] {
			if request.Method != http.MethodGet {
				t.Errorf("explain sent %s %s", request.Method, request.Path)
			}
		}
		if r.Next != "wait" || r.Reason != "create" || r.Object.Handled || !strings.Contains(r.Summary, "waits for backup") {
			t.Errorf("got %+v", r)
		}
		backup := handlerOf(t, r, "backup")
		if backup.Phase != "delayed" || backup.Attempts != 1 || backup.Message != "connection refused" || backup.Due == nil || time.Until(*backup.Due).Round(time.Minute) != 9*time.Minute {
			t.Errorf("backup: got %+v", backup)
		}
		for id, want := range map[string][2]string{
			"provision": {"succeeded", ""},
			"audit":     {"unmatched", `label tier is "dev", the handler requires "prod"`},
			"grow":      {"unmatched", `spec.field is "a", the handler requires not "a"`},
			"never":     {"unmatched", "the function of When at insight_test.go:"},
			"update":    {"unmatched", "it is declared for update, the reason is create"},
			"drop":      {"unmatched", "it is declared for delete, the reason is create"},
			"event":     {"matched", ""},
			"check":     {"matched", ""},
		} {
			if h := handlerOf(t, r, id); h.Phase != want[0] || !strings.HasPrefix(h.Why, want[1]) || !strings.Contains(h.Where, "insight_test.go:") {
				t.Errorf("%s: got %+v, want %q", id, h, want)
			}
		}
		if d := r.Deletion; !d.Guarded || !slices.Equal(d.Requires, []string{"drop", "check"}) || !slices.Equal(d.Others, []string{"other.io/guard"}) {
			t.Errorf("deletion: got %+v", d)
		}
		var out strings.Builder
		if err := r.Write(&out, time.Now()); err != nil {
			t.Fatal(err)
		}
		text = out.String()
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{"KopfExample default/x: create: waits for backup", "retries in 9m", "connection refused", "not called: label tier", "check (timer)", "would wait for the finalizer"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

func TestExplainShowsChangesThatAStoppedOperatorHasMissed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, inStatus("things"))
		runs(t, c, op, func() { c.Create(t, example("x", "a")) })
		if r := explained(t, c, op, "x"); r.Next != "nothing" || !r.Object.Handled || len(r.Changes) != 0 {
			t.Errorf("unchanged: got %+v", r)
		}
		changeField(t, c, "x", "b")
		r := explained(t, c, op, "x")
		if r.Next != "call" || r.Reason != "update" || len(r.Changes) != 1 || r.Changes[0].Path != "spec.field" || r.Changes[0].Old != "a" || r.Changes[0].New != "b" {
			t.Errorf("changed: got %+v", r)
		}
		if h := handlerOf(t, r, "update"); h.Phase != "due" {
			t.Errorf("got %+v", h)
		}
		unknown := commands(t, c, op).Explain(t.Context(), insight.Name{Kind: "kopfexmaple", Name: "x"}, false, nil)
		if unknown == nil || !strings.Contains(unknown.Error(), "the operator serves no resource") {
			t.Errorf("got %v", unknown)
		}
	})
}

func TestAPausedObjectCallsNoHandlerAndContinuesWithOneUpdate(t *testing.T) {
	for name, identity := range map[string][]gopf.Option{"without an identity": nil, "with one": {gopf.Identity("things.example.com")},
		"with state in the status": {gopf.Identity("things.example.com", gopf.StateInStatus(""))}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				var log lines
				declare := func() *gopf.Operator {
					op := plainOperator(&diary, nil, identity...)
					x := gopf.For[*Example](op, resource)
					x.OnDelete("delete", diary.handler("delete"))
					x.Daemon("daemon", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
						diary.add("daemon starts")
						<-ctx.Done()
						diary.add("daemon stops, paused %t", errors.Is(context.Cause(ctx), gopf.ErrPaused))
						return nil
					})
					return op
				}
				op := declare()
				stop := gopftest.Start(t, op, c, gopf.Log(log.logger()))
				c.Create(t, example("x", "a"))
				settle()
				pausing(t, c, op, insight.Pausing{Objects: insight.Objects{Names: []insight.Name{objectNamed("x")}}, Reason: "moving the data"})
				settle()
				writes := patches(c)
				changeField(t, c, "x", "b")
				settle()
				changeField(t, c, "x", "c")
				time.Sleep(time.Hour)
				synctest.Wait()
				if got, want := diary.all(), []string{"create a", "daemon starts", "daemon stops, paused true"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("while paused: got %q, want %q", got, want)
				}
				if n := patches(c); n != writes {
					t.Errorf("%d writes while paused", n-writes)
				}
				if !log.has("The object is paused", "moving the data") {
					t.Error("the log does not say that the object is paused")
				}
				if r := explained(t, c, op, "x"); r.Next != "paused" || r.Pause == nil || r.Pause.Reason != "moving the data" || len(r.Changes) != 1 {
					t.Errorf("got %+v", r)
				}
				err := commands(t, c, op).Retry(t.Context(), insight.Retrying{Name: objectNamed("x"), Out: &bytes.Buffer{}})
				if err == nil || !strings.Contains(err.Error(), "the object is paused") {
					t.Errorf("retry of a paused object: got %v", err)
				}
				pausing(t, c, op, insight.Pausing{Objects: insight.Objects{Names: []insight.Name{objectNamed("x")}}, Continue: true})
				settle()
				if got, want := diary.all()[3:], []string{"daemon starts", "update a->c"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("after the pause: got %q, want %q", got, want)
				}
				for key := range get(t, c, "x").GetAnnotations() {
					if strings.HasSuffix(key, "/pause") {
						t.Errorf("%s is left", key)
					}
				}
				stop()
				diary.lines = nil
				runs(t, c, declare(), nil)
				if got := diary.all(); slices.Contains(got, "update a->c") || len(got) != 2 { // the daemon
					t.Errorf("after a restart: got %q", got)
				}
			})
		})
	}
}

func TestADeletionIsNeverPaused(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, nil)
		gopf.For[*Example](op, resource).OnDelete("delete", diary.handler("delete"))
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		pausing(t, c, op, insight.Pausing{Objects: insight.Objects{Names: []insight.Name{objectNamed("x")}}})
		settle()
		c.Delete(t, resource, "default", "x")
		settle()
		if len(c.List(t, resource, "default")) != 0 || !slices.Contains(diary.all(), "delete delete a") {
			t.Errorf("the object exists; calls %q", diary.all())
		}
	})
}

func TestAPauseWithAnEndEndsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, nil)
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		pausing(t, c, op, insight.Pausing{Objects: insight.Objects{Kind: "kopfexamples"}, Until: time.Now().Add(time.Hour)})
		changeField(t, c, "x", "b")
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 1 {
			t.Errorf("before the end: got %q", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := diary.all(); !slices.Contains(got, "update a->b") {
			t.Errorf("after the end: got %q", got)
		}
	})
}

func TestAnObjectThatIsPausedFromTheStartIsNotTouched(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, nil)
		gopf.For[*Example](op, resource).OnDelete("delete", diary.handler("delete"))
		obj := example("x", "a")
		obj.SetAnnotations(map[string]string{"gopf.dev/pause": "for ever"})
		c.Create(t, obj)
		before := patches(c)
		runs(t, c, op, nil)
		if got := diary.all(); len(got) != 0 || patches(c) != before || len(get(t, c, "x").GetFinalizers()) != 0 {
			t.Errorf("got %q, %d writes", got, patches(c)-before)
		}
	})
}

func TestRetryCallsADelayedHandlerNow(t *testing.T) {
	for name, persistence := range map[string]func(*gopf.Operator){"annotations": nil, "status": inStatus("things")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := plainOperator(&diary, persistence)
				x := gopf.For[*Example](op, resource)
				x.OnCreate("late", diary.failing("late", 2, 24*time.Hour))
				x.OnCreate("later", diary.failing("later", 1, 24*time.Hour))
				gopftest.Start(t, op, c)
				c.Create(t, example("x", "a"))
				settle()
				count := func(line string) (n int) {
					for _, l := range diary.all() {
						if strings.HasPrefix(l, line) {
							n++
						}
					}
					return n
				}
				var out bytes.Buffer
				if err := commands(t, c, op).Retry(t.Context(), insight.Retrying{Name: objectNamed("x"), Handlers: []string{"late"}, Out: &out}); err != nil {
					t.Fatal(err)
				}
				settle()
				if count("late ") != 2 || count("later ") != 1 || count("create") != 1 || !strings.Contains(out.String(), "late due now") {
					t.Errorf("got %q and %q", diary.all(), out.String())
				}
				if err := commands(t, c, op).Retry(t.Context(), insight.Retrying{Name: objectNamed("x"), Handlers: []string{"create"}, Again: true, Out: &out}); err != nil {
					t.Fatal(err)
				}
				settle()
				if count("create") != 2 || count("late ") != 2 {
					t.Errorf("after --again: got %q", diary.all())
				}
				if err := commands(t, c, op).Retry(t.Context(), insight.Retrying{Name: objectNamed("x"), Out: &out}); err != nil {
					t.Fatal(err)
				}
				settle()
				if count("late ") != 3 || count("later ") != 2 {
					t.Errorf("after a retry of all: got %q", diary.all())
				}
				err := commands(t, c, op).Retry(t.Context(), insight.Retrying{Name: objectNamed("x"), Out: &out})
				if err == nil || !strings.Contains(err.Error(), "no handler is delayed") {
					t.Errorf("nothing to retry: got %v", err)
				}
				err = commands(t, c, op).Retry(t.Context(), insight.Retrying{Name: objectNamed("x"), Handlers: []string{"layter"}, Out: &out})
				if err == nil || !strings.Contains(err.Error(), `did you mean "later"?`) {
					t.Errorf("an unknown handler: got %v", err)
				}
			})
		})
	}
}

func TestReleaseRemovesAllMarksOfTheOperator(t *testing.T) {
	for name, identity := range map[string][]gopf.Option{"without an identity": nil, "with one": {gopf.Identity("things.example.com")},
		"with state in the status": {gopf.Identity("things.example.com", gopf.StateInStatus(""))}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New(identity...)
				x := gopf.For[*Example](op, resource).Select("shard=one").HandOver()
				x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
					ch.SetResult("kept")
					return nil
				})
				x.OnCreate("late", diary.failing("late", 99, time.Hour))
				x.OnDelete("delete", diary.handler("delete"))
				const objects = 12
				runs(t, c, op, func() {
					for i := range objects {
						obj := example(fmt.Sprint("x", i), "a")
						obj.SetLabels(map[string]string{"shard": "one"})
						obj.SetFinalizers([]string{"other.io/guard"})
						obj.SetAnnotations(map[string]string{"note": "mine"})
						c.Create(t, obj)
					}
				})
				// One that no replica selects, and one that waits for the operator.
				c.Patch(t, resource, "default", "x0", map[string]any{"metadata": map[string]any{"labels": map[string]any{"shard": nil}}})
				c.Patch(t, resource, "default", "x1", map[string]any{"metadata": map[string]any{"finalizers": []any{get(t, c, "x1").GetFinalizers()[1]}}})
				c.Delete(t, resource, "default", "x1")
				release := func(r insight.Releasing) string {
					t.Helper()
					var out bytes.Buffer
					r.Out = &out
					if err := commands(t, c, op).Release(t.Context(), r); err != nil {
						t.Fatal(err)
					}
					return out.String()
				}
				before := patches(c)
				if out := release(insight.Releasing{DryRun: true}); !strings.Contains(out, "12 seen, 12 to release, 0 failed") || patches(c) != before {
					t.Errorf("a dry run printed %q and wrote %d times", out, patches(c)-before)
				}
				if out := release(insight.Releasing{Selector: "shard!=one"}); !strings.Contains(out, "1 seen, 1 released") {
					t.Errorf("with a selector: printed %q", out)
				}
				if out := release(insight.Releasing{}); !strings.Contains(out, "11 released, 0 failed") || !strings.Contains(out, "0 objects with marks") {
					t.Errorf("printed %q", out)
				}
				before = patches(c)
				if out := release(insight.Releasing{}); !strings.Contains(out, "11 seen, 0 released") || patches(c) != before {
					t.Errorf("a repeated release printed %q", out)
				}
				left := c.List(t, resource, "default")
				if len(left) != objects-1 {
					t.Errorf("%d objects are left, want %d", len(left), objects-1)
				}
				for _, obj := range left {
					status, _, _ := unstructured.NestedMap(obj.Object, "status")
					if len(obj.GetFinalizers()) != 1 || len(obj.GetAnnotations()) != 1 || status["kopf"] != nil || status["things"] != nil || status["create"] == nil {
						t.Errorf("got %v", obj.Object)
					}
				}
				if got := diary.all(); slices.Contains(got, "delete delete a") {
					t.Errorf("a handler was called: %q", got)
				}
			})
		})
	}
}

func TestReleaseRefusesWhileTheOperatorRuns(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, nil)
		op.Settings.Election.Enabled, op.Settings.Election.Name, op.Settings.Election.Namespace = true, "things", "default"
		op.Settings.Election.Identity = "replica"
		stop := gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		err := commands(t, c, op).Release(t.Context(), insight.Releasing{Out: &bytes.Buffer{}})
		if err == nil || !strings.Contains(err.Error(), "holds the lease default/things; stop it first") {
			t.Errorf("got %v", err)
		}
		stop()
		var out bytes.Buffer
		if err := commands(t, c, op).Release(t.Context(), insight.Releasing{Out: &out}); err != nil || !strings.Contains(out.String(), "leases/default/things deleted") {
			t.Errorf("after the stop: got %v and %q", err, out.String())
		}
	})
}

func TestAPausedNamespaceCallsNoHandlersAndContinues(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, nil)
		x := gopf.For[*Example](op, resource)
		x.Daemon("daemon", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
			diary.add("daemon starts")
			<-ctx.Done()
			diary.add("daemon stops, paused %t", errors.Is(context.Cause(ctx), gopf.ErrPaused))
			return nil
		}, gopf.Optional())
		gopftest.Start(t, op, c, gopf.Namespaces("def*"))
		c.Create(t, example("x", "a"))
		settle()
		space := insight.Pausing{Objects: insight.Objects{Names: []insight.Name{{Kind: "namespace", Name: "default"}}}}
		pausing(t, c, op, space)
		settle()
		writes := patches(c)
		changeField(t, c, "x", "b")
		c.Create(t, example("new", "a"))
		time.Sleep(72 * time.Hour)
		synctest.Wait()
		if got, want := slices.Sorted(slices.Values(diary.all())), []string{"create a", "daemon starts", "daemon stops, paused true"}; !slices.Equal(got, want) || patches(c) != writes {
			t.Errorf("while paused: got %q, want %q; %d writes", got, want, patches(c)-writes)
		}
		if r := explained(t, c, op, "x"); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "gopf.dev/pause of the namespace default") {
			t.Errorf("explain has the notes %q", r.Notes)
		}
		space.Continue = true
		pausing(t, c, op, space)
		settle()
		if got, want := slices.Sorted(slices.Values(diary.all()[3:])), []string{"create a", "daemon starts", "daemon starts", "update a->b"}; !slices.Equal(got, want) {
			t.Errorf("after the pause: got %q, want %q", got, want)
		}
	})
}

func TestReconcileHandlersOfAPausedObjectWait(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			diary.add("call")
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap](), gopf.Every(time.Minute))
		gopftest.Start(t, op, c)
		c.Create(t, withItems("x", "a", "one"))
		settle()
		if r := explained(t, c, op, "x"); len(r.Children) != 1 || r.Children[0].Name != "one" || handlerOf(t, r, "children").Phase != "matched" {
			t.Errorf("explain: got %+v", r)
		}
		pausing(t, c, op, insight.Pausing{Objects: insight.Objects{Names: []insight.Name{objectNamed("x")}}, Until: time.Now().Add(time.Hour)})
		settle()
		calls, writes := len(diary.all()), patches(c)
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": "foreign"}})
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if got := len(diary.all()); got != calls {
			t.Errorf("%d calls while paused", got-calls)
		}
		if n := patches(c); n != writes {
			t.Errorf("%d writes while paused", n-writes)
		}
		if r := explained(t, c, op, "x"); handlerOf(t, r, "children").Phase != "blocked" {
			t.Errorf("explain while paused: got %+v", r.Handlers)
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		value, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", "one").Object, "data", "key")
		if value != "a" || len(diary.all()) == calls {
			t.Errorf("after the pause: the child has %q, %d calls", value, len(diary.all())-calls)
		}
	})
}

func TestAnInterruptedReleaseContinues(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		declare := func() *gopf.Operator {
			op := gopf.New(gopf.Identity("things.example.com", gopf.StateInStatus("")))
			x := gopf.For[*Example](op, resource)
			x.OnCreate("late", func(context.Context, *gopf.Change[*Example]) error {
				return gopf.RetryAfter(time.Hour, errors.New("later"))
			})
			x.OnDelete("delete", func(context.Context, *gopf.Change[*Example]) error { return nil })
			return op
		}
		const objects = 300
		runs(t, c, declare(), func() {
			for i := range objects {
				obj := example(fmt.Sprint("x", i), "a")
				obj.SetFinalizers([]string{"other.io/guard"})
				c.Create(t, obj)
			}
		})
		for _, at := range []int{40, 205} { // a crash in the middle
			ctx, cancel := context.WithCancel(t.Context())
			w := &wire{next: c.Transport(), at: at, mishap: crashAfter, kill: cancel}
			config := c.RESTConfig()
			config.Transport = w
			o, err := gopf.TestSeam{}.Insight(declare(), gopf.Cluster(config), gopf.Log(quiet()))
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Release(ctx, insight.Releasing{Out: &bytes.Buffer{}}); err == nil {
				t.Error("an interrupted release succeeded")
			}
			cancel()
		}
		var out bytes.Buffer
		if err := commands(t, c, declare()).Release(t.Context(), insight.Releasing{Out: &out}); err != nil || !strings.Contains(out.String(), "0 objects with marks") {
			t.Errorf("got %v and %q", err, out.String())
		}
		left := c.List(t, resource, "default")
		for _, obj := range left {
			status, _, _ := unstructured.NestedMap(obj.Object, "status")
			if f := obj.GetFinalizers(); len(f) != 1 || f[0] != "other.io/guard" || len(obj.GetAnnotations()) != 0 || status["things"] != nil {
				t.Fatalf("got %v", obj.Object)
			}
		}
		if len(left) != objects {
			t.Errorf("%d objects are left, want %d", len(left), objects)
		}
	})
}
