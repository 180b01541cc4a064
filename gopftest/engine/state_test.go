package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

// baseIn returns the base of an object in the status.
func baseIn(obj *unstructured.Unstructured, key string) string {
	text, _, _ := unstructured.NestedString(obj.Object, "status", key, "last-handled-configuration")
	return text
}

// plainOperator has handlers that need no finalizer.
func plainOperator(diary *calls, persistence func(*gopf.Operator), opts ...gopf.Option) *gopf.Operator {
	op := gopf.New(opts...)
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("create %s", ch.Object.Spec.Field)
		ch.SetResult(ch.Object.Spec.Field)
		return nil
	})
	x.OnUpdate("update", func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("update %s->%s", ch.Old.Spec.Field, ch.Object.Spec.Field)
		return nil
	})
	if persistence != nil {
		persistence(op)
	}
	return op
}

func inStatus(key string) func(*gopf.Operator) {
	return func(op *gopf.Operator) { op.Settings.Persistence = gopf.StateInStatus(key) }
}

// runs starts an operator for a minute.
func runs(t *testing.T, c *gopftest.Cluster, op *gopf.Operator, during func(), opts ...gopf.RunOption) {
	t.Helper()
	stop := gopftest.Start(t, op, c, opts...)
	settle()
	if during != nil {
		during()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	stop()
}

func changeField(t *testing.T, c *gopftest.Cluster, name, value string) {
	t.Helper()
	c.Patch(t, resource, "default", name, map[string]any{"spec": map[string]any{"field": value}})
}

func TestStateInTheStatusTakesOneWritePerChange(t *testing.T) {
	for name, make := range map[string]func(*calls) *gopf.Operator{
		"by the settings": func(d *calls) *gopf.Operator { return plainOperator(d, inStatus("things")) },
		"by the identity": func(d *calls) *gopf.Operator {
			return plainOperator(d, nil, gopf.Identity("things.example.com", gopf.StateInStatus("")))
		},
		"by the settings, after an identity": func(d *calls) *gopf.Operator {
			return plainOperator(d, inStatus("things"), gopf.Identity("other.example.com"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				runs(t, c, make(&diary), func() {
					c.Create(t, example("x", "a"))
					time.Sleep(time.Minute)
					if n := patches(c); n != 1 {
						t.Errorf("%d writes for the creation, want 1", n)
					}
					changeField(t, c, "x", "b")
				})
				if n := patches(c); n != 2 {
					t.Errorf("%d writes for both changes, want 2", n)
				}
				x := get(t, c, "x")
				if baseIn(x, "things") != `{"spec":{"field":"b"}}` || len(x.GetAnnotations())+len(x.GetFinalizers()) > 0 {
					t.Errorf("got %v", x.Object)
				}
				runs(t, c, make(&diary), nil)
				if want := []string{"create a", "update a->b"}; !slices.Equal(diary.all(), want) || patches(c) != 2 {
					t.Errorf("after a restart: calls %q, want %q; %d writes, want 2", diary.all(), want, patches(c))
				}
			})
		})
	}
}

func TestKopfReadsStateInTheStatusByItsName(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Settings.Persistence = gopf.StateInStatus("my-things_2")
		gopf.For[*Example](op, resource).OnCreate("create", diary.failing("create", 1, time.Hour))
		runs(t, c, op, func() { c.Create(t, example("x", "a")) })
		x := get(t, c, "x")
		record, _, _ := unstructured.NestedMap(x.Object, "status", "my-things_2", "progress", "create")
		if record["retries"] != int64(1) || record["purpose"] != "create" || record["delayed"] == nil || record["success"] != false {
			t.Errorf("got the record %v", record)
		}
		// These are the storages that read and write what Kopf does.
		op = gopf.New()
		op.Settings.Persistence.Progress, op.Settings.Persistence.Base = storage.NewStatusProgress("my-things_2"), storage.NewStatusBase("my-things_2")
		gopf.For[*Example](op, resource).OnCreate("create", diary.failing("create", 1, time.Hour))
		gopftest.Start(t, op, c)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if want := []string{"create create a #0", "create create a #1"}; !slices.Equal(diary.all(), want) {
			t.Errorf("got %q, want %q", diary.all(), want)
		}
	})
}

func TestInvalidKeysOfStateInTheStatusAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		for _, key := range []string{"", "a.b", "a/b", strings.Repeat("x", 64)} {
			op := gopf.New()
			op.Settings.Persistence = gopf.StateInStatus(key)
			if err := op.Run(t.Context(), gopf.Cluster(c.RESTConfig()), gopf.Log(quiet())); err == nil || !strings.Contains(err.Error(), "key") {
				t.Errorf("%q: got %v", key, err)
			}
		}
	})
}

func TestResultsOfHandlersCannotReplaceTheState(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, inStatus("create"))
		err := op.Run(t.Context(), gopf.Cluster(c.RESTConfig()), gopf.Log(quiet()))
		if err == nil || !strings.Contains(err.Error(), `handler "create"`) || !strings.Contains(err.Error(), "status.create") {
			t.Errorf("got %v", err)
		}
	})
}

func TestStateInAnnotationsCountsAndMovesWithTheNextWrite(t *testing.T) {
	identity := func(d *calls, opts ...gopf.IdentityOption) *gopf.Operator {
		return plainOperator(d, nil, gopf.Identity("things.example.com", opts...))
	}
	for name, ops := range map[string]struct{ before, after func(*calls) *gopf.Operator }{
		"of Kopf": {
			func(d *calls) *gopf.Operator { return plainOperator(d, nil) },
			func(d *calls) *gopf.Operator { return plainOperator(d, inStatus("things")) },
		},
		"of an identity": {
			func(d *calls) *gopf.Operator { return identity(d) },
			func(d *calls) *gopf.Operator { return identity(d, gopf.StateInStatus("")) },
		},
		"of a former identity": {
			func(d *calls) *gopf.Operator { return plainOperator(d, nil) },
			func(d *calls) *gopf.Operator {
				return identity(d, gopf.FormerlyNamed(""), gopf.StateInStatus(""))
			},
		},
		"of a former key": {
			func(d *calls) *gopf.Operator {
				return plainOperator(d, nil, gopf.Identity("old.example.com", gopf.StateInStatus("")))
			},
			func(d *calls) *gopf.Operator {
				return identity(d, gopf.FormerlyNamed("old.example.com"), gopf.StateInStatus(""))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				runs(t, c, ops.before(&diary), func() { c.Create(t, example("x", "a")) })
				writes := patches(c)
				runs(t, c, ops.after(&diary), nil)
				if want := []string{"create a"}; !slices.Equal(diary.all(), want) || patches(c) != writes {
					t.Fatalf("a restart: calls %q, want %q; %d writes", diary.all(), want, patches(c)-writes)
				}
				runs(t, c, ops.after(&diary), func() { changeField(t, c, "x", "b") })
				x := get(t, c, "x")
				if baseIn(x, "things") == "" || patches(c) != writes+1 {
					t.Errorf("the state was not moved in one write: %v, %d writes", x.Object, patches(c)-writes)
				}
				if _, there, _ := unstructured.NestedMap(x.Object, "status", "old"); there {
					t.Errorf("the former key is still there: %v", x.Object)
				}
				runs(t, c, ops.after(&diary), func() { changeField(t, c, "x", "c") })
				if want := []string{"create a", "update a->b", "update b->c"}; !slices.Equal(diary.all(), want) {
					t.Errorf("calls %q, want %q", diary.all(), want)
				}
				// The next write outside of the status removes the annotations.
				op := ops.after(&diary)
				gopf.For[*Example](op, resource).OnDelete("delete", diary.handler("delete"))
				runs(t, c, op, nil)
				if x = get(t, c, "x"); len(x.GetAnnotations()) > 0 || len(x.GetFinalizers()) != 1 {
					t.Errorf("got %v", x.Object["metadata"])
				}
			})
		})
	}
}

func TestStateInTheStatusMovesBackToAnnotations(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		back := func() *gopf.Operator {
			return plainOperator(&diary, func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} })
		}
		runs(t, c, plainOperator(&diary, inStatus("things")), func() { c.Create(t, example("x", "a")) })
		writes := patches(c)
		runs(t, c, back(), nil)
		if patches(c) != writes {
			t.Errorf("a restart wrote %d times", patches(c)-writes)
		}
		runs(t, c, back(), func() { changeField(t, c, "x", "b") })
		x := get(t, c, "x")
		if _, there, _ := unstructured.NestedMap(x.Object, "status", "things"); there || !strings.Contains(x.GetAnnotations()[annotated], `"b"`) {
			t.Errorf("got %v", x.Object)
		}
		runs(t, c, plainOperator(&diary, nil), func() { changeField(t, c, "x", "c") }) // needs no settings
		runs(t, c, plainOperator(&diary, inStatus("things")), func() { changeField(t, c, "x", "d") })
		if want := []string{"create a", "update a->b", "update b->c", "update c->d"}; !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
	})
}

func TestAnUnfinishedHandlingContinuesInTheOtherPlace(t *testing.T) {
	half := func(diary *calls, retries int, choose func(*gopf.Operator)) *gopf.Operator {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("first", diary.handler("first"))
		x.OnCreate("second", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("sub", func(context.Context, *gopf.Change[*Example]) error { diary.add("sub"); return nil })
			if err := ch.RunSubs(ctx); err != nil {
				return err
			}
			diary.add("second #%d", ch.Retry)
			if ch.Retry < retries {
				return gopf.RetryAfter(2*time.Minute, errors.New("not yet"))
			}
			return nil
		})
		choose(op)
		return op
	}
	annotations := func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} }
	for name, places := range map[string][2]func(*gopf.Operator){
		"to the status":   {annotations, inStatus("things")},
		"from the status": {inStatus("things"), annotations},
		"to another key": {inStatus("old"), func(op *gopf.Operator) {
			inStatus("things")(op)
			op.Settings.Persistence.FormerStatusKeys = []string{"old"}
		}},
		"from Kopf's default": {func(*gopf.Operator) {}, inStatus("kopf")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				runs(t, c, half(&diary, 3, places[0]), func() { c.Create(t, example("x", "a")) })
				for range 3 {
					runs(t, c, half(&diary, 3, places[1]), func() { time.Sleep(time.Minute) })
				}
				runs(t, c, half(&diary, 3, places[1]), func() { time.Sleep(5 * time.Minute) })
				want := []string{"first create a", "sub", "second #0", "second #1", "second #2", "second #3"}
				if !slices.Equal(diary.all(), want) {
					t.Errorf("calls %q, want %q; %v", diary.all(), want, get(t, c, "x").Object)
				}
			})
		})
	}
}

func TestTheAnnotationsOfAnotherOperatorWinOnlyIfItHasWorkedSinceTheMove(t *testing.T) {
	const kopfs = `{"spec":{"field":"c"}}` + "\n"
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		runs(t, c, plainOperator(&diary, nil), func() { c.Create(t, example("x", "a")) })
		runs(t, c, plainOperator(&diary, inStatus("things")), func() { changeField(t, c, "x", "b") })
		// Kopf handles another change.
		c.Patch(t, resource, "default", "x", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{annotated: kopfs}}, "spec": map[string]any{"field": "c"},
		})
		var log lines
		runs(t, c, plainOperator(&diary, inStatus("things")), func() {
			time.Sleep(time.Minute)
			changeField(t, c, "x", "d")
		}, gopf.Log(log.logger()))
		if want := []string{"create a", "update a->b", "update c->d"}; !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
		if n := log.count("Another operator keeps the state"); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
		runs(t, c, plainOperator(&diary, inStatus("things")), nil)
		if len(diary.all()) != 3 {
			t.Errorf("after a restart: calls %q", diary.all())
		}
	})
}

func TestUsersWithoutAccessToTheStatusCannotForgeTheState(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		runs(t, c, plainOperator(&diary, inStatus("things")), func() {
			c.Create(t, example("x", "a"))
			settle()
			c.Patch(t, resource, "default", "x", map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{
					annotated:                 `{"spec":{"field":"b"}}` + "\n",
					"kopf.zalando.org/update": `{"purpose":"update","success":true,"failure":false,"retries":1}`,
				}},
				"spec": map[string]any{"field": "b"},
			})
		}, gopf.Log(log.logger()))
		if want := []string{"create a", "update a->b"}; !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
		if n := log.count("Another operator keeps the state"); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
	})
}

func TestACopyWithAnnotationsOfAnotherObjectIsNewInTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		runs(t, c, plainOperator(&diary, nil), func() { c.Create(t, example("x", "a")) })
		y := example("y", "a")
		y.SetAnnotations(get(t, c, "x").GetAnnotations())
		c.Create(t, y)
		writes := patches(c)
		runs(t, c, plainOperator(&diary, inStatus("things")), nil)
		runs(t, c, plainOperator(&diary, inStatus("things")), func() { changeField(t, c, "y", "b") })
		if want := []string{"create a", "create a", "update a->b"}; !slices.Equal(diary.all(), want) || patches(c) != writes+2 {
			t.Errorf("calls %q, want %q; %d writes, want 2", diary.all(), want, patches(c)-writes)
		}
	})
}
