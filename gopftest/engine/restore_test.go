package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// restoring is an operator that tracks a field of each object.
func restoring(diary *calls) (op *gopf.Operator, fields func() map[string]string) {
	op = gopf.New()
	x := gopf.For[*Example](op, resource)
	index := gopf.Index(x, "fields", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
		return map[string]string{s.Object.Name: s.Object.Spec.Field}, nil
	})
	x.On(gopf.Create|gopf.Update, "work", func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("%s %s", ch.Object.Name, ch.Object.Spec.Field)
		return nil
	})
	x.OnDelete("drop", func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("%s dropped", ch.Object.Name)
		return nil
	})
	return op, func() map[string]string {
		all := map[string]string{}
		for key, v := range index.All() {
			all[key] = v
		}
		return all
	}
}

func setField(t *testing.T, c *gopftest.Cluster, name, field string) {
	c.Patch(t, resource, "default", name, map[string]any{"spec": map[string]any{"field": field}})
}

// checkHandled checks that the last state of each object was handled, and that the index
// contains exactly the existing objects.
func checkHandled(t *testing.T, c *gopftest.Cluster, fields map[string]string) {
	t.Helper()
	there := map[string]bool{}
	for _, o := range c.List(t, resource, "default") {
		field := o.Object["spec"].(map[string]any)["field"].(string)
		there[o.GetName()] = true
		if base := o.GetAnnotations()[annotated]; base != fmt.Sprintf(`{"spec":{"field":%q}}`+"\n", field) {
			t.Errorf("%s is %s, but was last handled as %s", o.GetName(), field, base)
		}
		if fields[o.GetName()] != field {
			t.Errorf("%s is %s, but the index has %q", o.GetName(), field, fields[o.GetName()])
		}
		if o.GetDeletionTimestamp() != nil {
			t.Errorf("%s is still being deleted", o.GetName())
		}
	}
	for name := range fields {
		if !there[name] {
			t.Errorf("%s is in the index, but does not exist", name)
		}
	}
}

func TestARestoreFromABackupIsNoticedWithinSeconds(t *testing.T) {
	for name, story := range map[string]struct {
		after func(t *testing.T, c *gopftest.Cluster) // right after the restore
		want  []string                                // handled because of the restore
	}{
		"a change is undone": {
			after: func(*testing.T, *gopftest.Cluster) {},
		},
		"a change is undone and another one gets its version": {
			after: func(t *testing.T, c *gopftest.Cluster) {
				for range 3 { // writes of the operator after the backup
					c.Create(t, example(fmt.Sprintf("filler%d", rand.Uint32()), "f"))
				}
				setField(t, c, "changed", "c")
			},
			want: []string{"changed c"},
		},
		"the server overtakes the version that was seen": {
			after: func(t *testing.T, c *gopftest.Cluster) {
				setField(t, c, "changed", "c")
				time.Sleep(2 * time.Second)
				for i := range 100 {
					c.Create(t, example(fmt.Sprintf("new%d", i), "n"))
				}
			},
			want: []string{"changed c", "new99 n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op, fields := restoring(&diary)
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				for _, name := range []string{"changed", "deleted", "same"} {
					c.Create(t, example(name, "a"))
				}
				time.Sleep(time.Minute)
				backup := c.Backup()
				setField(t, c, "changed", "b")
				c.Delete(t, resource, "default", "deleted")
				c.Create(t, example("created", "a"))
				time.Sleep(time.Minute)
				before := len(diary.all())
				down := c.Fault(gopftest.Requests("", ""), gopftest.Drop())
				c.Restore(t, backup)
				time.Sleep(3 * time.Second)
				down.Stop()
				story.after(t, c)
				time.Sleep(5 * time.Second)
				got := diary.all()[before:]
				for _, want := range story.want {
					if !slices.Contains(got, want) {
						t.Errorf("%q was not handled: %q", want, got)
					}
				}
				if slices.Contains(got, "same a") {
					t.Errorf("an object that was not affected was handled again: %q", got)
				}
				now := fields()
				for name, want := range map[string]string{"created": "", "deleted": "a", "same": "a"} {
					if now[name] != want {
						t.Errorf("the index has %q for %s, want %q", now[name], name, want)
					}
				}
				for _, o := range c.List(t, resource, "default") {
					if want := o.Object["spec"].(map[string]any)["field"]; now[o.GetName()] != want {
						t.Errorf("the index has %q for %s, want %q", now[o.GetName()], o.GetName(), want)
					}
				}
				// From now on, everything works as usual, including deletions.
				setField(t, c, "deleted", "d")
				c.Delete(t, resource, "default", "changed")
				time.Sleep(time.Minute)
				for _, want := range []string{"deleted d", "changed dropped"} {
					if got := diary.all()[before:]; !slices.Contains(got, want) {
						t.Errorf("%q was not handled after the restore: %q", want, got)
					}
				}
			})
		})
	}
}

// One small list detects it, whatever the number of watches.
func TestAConnectionFailureCostsOneSmallList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := []string{resource, "kopf.dev/v1/others", "kopf.dev/v1/more"}
		c := gopftest.NewCluster(t, kinds...)
		op := gopf.New()
		for _, r := range kinds {
			gopf.For[*Example](op, r).OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
		}
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(time.Minute)
		before := c.Count(gopftest.Requests("list", ""))
		c.CutStreams()
		time.Sleep(10 * time.Minute)
		if n := c.Count(gopftest.Requests("list", "")) - before; n != 1 {
			t.Errorf("%d lists after a failure without a restore, want 1", n)
		}
	})
}

// An API server that has just started rejects requests for resources that it does not
// serve yet. Other resources show that its versions went back.
func TestARestoreIsDetectedBeforeAllResourcesAreServed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		op, _ := restoring(&diary)
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		backup := c.Backup()
		c.Create(t, example("x", "a"))
		time.Sleep(2 * time.Minute) // bookmarks bring all watches to the newest version
		c.Fault(gopftest.Requests("", "kopfexamples"), gopftest.Fail(503))
		c.Restore(t, backup)
		time.Sleep(time.Second)
		if !log.has("Resource versions of the API server went back") {
			t.Error("the restore was not detected within a second")
		}
	})
}

// At random, objects are created, changed and deleted, backups are made, and the cluster
// is restored, with and without an outage before the operator can look. A restore cannot
// be detected once the version has reached its former value; therefore users wait for two
// seconds.
func TestRandomRestores(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				random := rand.New(rand.NewPCG(seed, 1))
				var diary calls
				op, fields := restoring(&diary)
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				backup := c.Backup()
				for step := range 30 {
					name, field := fmt.Sprintf("o%d", random.IntN(4)), fmt.Sprintf("v%d", step)
					o, there := c.Lookup(t, resource, "default", name)
					alive := there && o.GetDeletionTimestamp() == nil
					switch n := random.IntN(10); {
					case n < 5 && alive:
						setField(t, c, name, field)
					case n < 6 && alive:
						c.Delete(t, resource, "default", name)
					case n < 6 && !there:
						c.Create(t, example(name, field))
					case n < 7:
						backup = c.Backup()
					case n < 8:
						down := c.Fault(gopftest.Requests("", ""), gopftest.Drop())
						c.Restore(t, backup)
						time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
						down.Stop()
						time.Sleep(2 * time.Second)
					case n < 9:
						c.Restore(t, backup)
						time.Sleep(2 * time.Second)
					}
					time.Sleep([]time.Duration{0, time.Millisecond, 300 * time.Millisecond, 10 * time.Second}[random.IntN(4)])
				}
				time.Sleep(time.Minute)
				checkHandled(t, c, fields())
			})
		})
	}
}

// The API server is unavailable for some time. Afterwards, it no longer has the versions
// from which the watches want to resume.
func TestTheOperatorRecoversQuicklyAfterAnOutage(t *testing.T) {
	for _, lasts := range []time.Duration{time.Second, 7 * time.Second, 20 * time.Second, 3 * time.Minute, time.Hour} {
		t.Run(lasts.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op, _ := restoring(&diary)
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				down := c.Fault(gopftest.Requests("", ""), gopftest.Drop())
				c.CutStreams()
				time.Sleep(lasts)
				setField(t, c, "x", "b")
				c.Expire()
				c.Create(t, example("y", "a"))
				down.Stop()
				time.Sleep(5 * time.Second)
				for _, want := range []string{"x b", "y a"} {
					if got := diary.all(); !slices.Contains(got, want) {
						t.Errorf("%q was not handled within 5 s: %q", want, got)
					}
				}
			})
		})
	}
}
