package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const missingInIndices = "The objects of the namespace are missing in the indices"

// teams is an operator with an index that serves several namespaces. Its handler notes the
// names of objects.
func teams(t *testing.T, c *gopftest.Cluster) (op *gopf.Operator, index *gopf.IndexOf[string, string], diary *calls) {
	t.Helper()
	for _, namespace := range []string{"team-1", "team-2"} {
		c.CreateNamespace(t, namespace)
		o := example("of-"+namespace, "a")
		o.SetNamespace(namespace)
		c.Create(t, o)
	}
	op, diary = gopf.New(), &calls{}
	x := gopf.For[*Example](op, resource)
	index = gopf.Index(x, "by-field", byField)
	x.OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("%s", ch.Object.Name)
		return nil
	})
	return op, index, diary
}

// A tenant that may create namespaces makes one in which the operator has no Role. Then the
// operator restarts.
func TestTheIndexBarrierOpensWithoutAForbiddenNamespaceOfAPattern(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op, index, diary := teams(t, c)
		lift := c.Deny("*", "kopfexamples", "team-2")
		var log lines
		gopftest.Start(t, op, c, gopf.Namespaces("team-*"), gopf.Log(log.logger()))
		time.Sleep(4 * time.Second) // the Role may come a moment later
		synctest.Wait()
		if got := diary.all(); len(got) > 0 {
			t.Errorf("after 4 seconds: got %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, want := diary.all(), []string{"of-team-1"}; !slices.Equal(got, want) {
			t.Errorf("an hour after the start: got %q, want %q", got, want)
		}
		if n := log.count(missingInIndices, "namespace=team-2", "resource="); n != 1 || log.count(missingInIndices) != 1 {
			t.Errorf("%d warnings", n)
		}
		lift()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"of-team-1", "of-team-2"}; !slices.Equal(got, want) {
			t.Errorf("after it was allowed: got %q, want %q", got, want)
		}
		if got, want := values(index, "a"), []string{"of-team-1", "of-team-2"}; !slices.Equal(got, want) {
			t.Errorf("after it was allowed: got %q in the index, want %q", got, want)
		}
	})
}

func TestTheIndexBarrierStaysClosed(t *testing.T) {
	deny := func(c *gopftest.Cluster) { c.Deny("*", "kopfexamples", "team-2") }
	for name, test := range map[string]struct {
		patterns []string
		disturb  func(*gopftest.Cluster)
	}{
		"if a named namespace is forbidden":           {[]string{"team-1", "team-2"}, deny},
		"if it is forbidden and a pattern matches it": {[]string{"team-*", "team-2"}, deny},
		"if the whole cluster is forbidden":           {nil, func(c *gopftest.Cluster) { c.Deny("*", "kopfexamples", "-") }},
		"if a namespace of a pattern fails otherwise": {[]string{"team-*"}, func(c *gopftest.Cluster) {
			c.Fault(gopftest.Requests("", "kopfexamples").Object("team-2", "").From(1), gopftest.Fail(503))
		}},
		"if a namespace of a pattern does not answer": {[]string{"team-*"}, func(c *gopftest.Cluster) {
			c.Fault(gopftest.Requests("", "kopfexamples").Object("team-2", "").From(1), gopftest.Hang())
		}},
		"if a namespace is forbidden only for a moment": {[]string{"team-*"}, func(c *gopftest.Cluster) {
			lift := c.Deny("*", "kopfexamples", "team-2")
			time.AfterFunc(2*time.Second, func() {
				c.Fault(gopftest.Requests("", "kopfexamples").Object("team-2", "").From(1), gopftest.Fail(503))
				lift()
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				op, _, diary := teams(t, c)
				test.disturb(c)
				var log lines
				options := []gopf.RunOption{gopf.Log(log.logger())}
				if test.patterns != nil {
					options = append(options, gopf.Namespaces(test.patterns...))
				}
				gopftest.Start(t, op, c, options...)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := diary.all(); len(got) > 0 || log.has(missingInIndices) {
					t.Errorf("got %q", got)
				}
				if !log.has("some indices are not filled") {
					t.Error("the log does not say why no handler is called")
				}
			})
		})
	}
}
