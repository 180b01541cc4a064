package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

// copied creates the copy y of the object x, with all of its annotations:
// kubectl get -o yaml | sed s/x/y/ | kubectl create.
func copied(t *testing.T, c *gopftest.Cluster) {
	t.Helper()
	twin := example("y", "a")
	twin.SetAnnotations(get(t, c, "x").GetAnnotations())
	twin.SetLabels(get(t, c, "x").GetLabels())
	c.Create(t, twin)
}

func TestACopyOfAnObjectIsHandledAsANewOne(t *testing.T) {
	own := func(op *gopf.Operator) {
		op.Settings.Persistence.Progress = storage.NewAnnotationProgress("my.example.com")
		op.Settings.Persistence.Base = storage.NewAnnotationBase("my.example.com")
	}
	for name, test := range map[string]struct {
		set     func(*gopf.Operator)
		beside  func(x *gopf.Resource[*Example]) // declarations that prevent skipping unchanged objects by their bytes
		trusted bool
	}{
		"by default":     {},
		"decoded":        {beside: func(x *gopf.Resource[*Example]) { x.OnField("f", "status.phase", (&calls{}).handler("f")) }},
		"another prefix": {set: own},
		"several bases": {set: func(op *gopf.Operator) {
			op.Settings.Persistence.Base = storage.MultiBase(storage.DefaultBase(), storage.NewStatusBase("x"))
		}},
		"with a finalizer":   {beside: func(x *gopf.Resource[*Example]) { x.OnDelete("d", (&calls{}).handler("d")) }},
		"copies are trusted": {set: func(op *gopf.Operator) { op.Settings.Persistence.TrustCopies = true }, trusted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				var log lines
				declare := func() *gopf.Operator {
					op := gopf.New()
					if test.set != nil {
						test.set(op)
					}
					x := gopf.For[*Example](op, resource)
					x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
						diary.add("make %s", ch.Object.Name)
						return nil
					})
					x.OnCreate("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
						diary.add("slow %s #%d", ch.Object.Name, ch.Retry)
						if ch.Retry == 0 {
							return gopf.RetryAfter(10*time.Second, errors.New("not yet"))
						}
						return nil
					})
					x.OnUpdate("change", diary.handler("change"))
					if test.beside != nil {
						test.beside(x)
					}
					return op
				}
				stop := gopftest.Start(t, declare(), c, gopf.Log(log.logger()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				copied(t, c)
				time.Sleep(time.Hour)
				want := []string{"make x", "slow x #0", "slow x #1"}
				if !test.trusted {
					want = append(want, "make y", "slow y #0", "slow y #1")
				}
				if got := diary.all(); !slices.Equal(got, want) {
					t.Errorf("calls: %q, want %q", got, want)
				}
				if n := log.count("has the stored state of another object"); n != 1 && !test.trusted || n > 0 && test.trusted {
					t.Errorf("%d log lines about the copy", n)
				}
				stop()
				writes := patches(c)
				gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				if got := diary.all(); len(got) != len(want) || patches(c) != writes {
					t.Errorf("after a restart: calls %q, %d writes", got, patches(c)-writes)
				}
				for key, value := range get(t, c, "y").GetAnnotations() {
					uid := get(t, c, "y").GetUID()
					if test.trusted {
						uid = get(t, c, "x").GetUID()
					}
					if strings.HasSuffix(key, "/gopf.bound") && !strings.HasPrefix(value, string(uid)+".") {
						t.Errorf("%s: %s", key, value)
					}
				}
			})
		})
	}
}

// A copy that is made while the original is being handled contains records and the note.
// They are removed by the first write.
func TestACopyOfAnObjectThatIsBeingHandledStartsOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "done", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("done %s %s", ch.Object.Name, ch.Reason)
			return nil
		})
		x.OnUpdate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("sub", func(context.Context, *gopf.Change[*Example]) error {
				return gopf.RetryAfter(24*time.Hour, errors.New("not yet"))
			})
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Minute)
		copied(t, c)
		time.Sleep(time.Hour)
		if got, want := diary.all(), []string{"done x create", "done x update", "done y create"}; !slices.Equal(got, want) {
			t.Errorf("calls: %q, want %q", got, want)
		}
		if got := get(t, c, "y").GetAnnotations(); len(got) != 2 || got[annotated] == "" || got[bound] == "" {
			t.Errorf("annotations of the copy: %q", got)
		}
	})
}

// Objects without a binding were handled by an earlier version, or later by Kopf. Their
// state is trusted: no call, no write.
func TestStateWithoutItsBindingIsTrusted(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"no binding":                  {},
		"the binding of another base": {bound: "00000000-0000-0000-0000-000000000000.00000000"},
		"no binding at all":           {bound: "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				o := example("x", "a")
				annotations[annotated] = `{"spec":{"field":"a"}}` + "\n"
				o.SetAnnotations(annotations)
				c.Create(t, o)
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.OnCreate("make", diary.handler("make"))
				x.OnUpdate("change", diary.handler("change"))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				if got := diary.all(); len(got) > 0 || patches(c) > 0 {
					t.Errorf("calls: %q, %d writes", got, patches(c))
				}
			})
		})
	}
}
