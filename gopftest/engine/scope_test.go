package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestSelectorsAreSentToTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).Select("tier=prod").OnCreate("c", diary.handler("create"))
		prod := example("prod", "a")
		prod.SetLabels(map[string]string{"tier": "prod"})
		c.Create(t, prod)
		c.Create(t, example("test", "b"))
		gopftest.Start(t, op, c)
		settle()
		if got := diary.all(); !slices.Equal(got, []string{"create create a"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestExactNamespacesAreServedWithoutPermissionToListNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Fault(gopftest.Requests("", "namespaces").From(1), gopftest.Fail(403))
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("create"))
		var log lines
		gopftest.Start(t, op, c, gopf.Namespaces("default", "other-*"), gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		if got := diary.all(); !slices.Equal(got, []string{"create create a"}) {
			t.Errorf("got %q", got)
		}
		if !log.has("The operator may not list namespaces") {
			t.Error("the log has no warning")
		}
	})
}

func TestMissingNamespacesAreLoggedAndServedLater(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("create"))
		var log lines
		gopftest.Start(t, op, c, gopf.Namespaces("default", "nowhere"), gopf.Log(log.logger()))
		settle()
		if !log.has("The namespace 'nowhere' does not exist") || log.has("'default' does not exist") {
			t.Error("the log does not name the missing namespace, or names an existing one")
		}
		c.CreateNamespace(t, "nowhere")
		x := example("x", "a")
		x.SetNamespace("nowhere")
		c.Create(t, x)
		settle()
		if got := diary.all(); !slices.Equal(got, []string{"create create a"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestOnlyNamespacesWithMatchingNamesAreHandled(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Resource("v1/namespaces").OnEvent("ns", func(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
			diary.add("%s", e.Object.GetName())
			return nil
		})
		c.CreateNamespace(t, "app-one")
		gopftest.Start(t, op, c, gopf.Namespaces("app-*"))
		settle()
		c.CreateNamespace(t, "app-two")
		c.CreateNamespace(t, "elsewhere")
		settle()
		if got := diary.all(); !slices.Equal(got, []string{"app-one", "app-two"}) {
			t.Errorf("got %q", got)
		}
	})
}

// A forbidden request triggers an access review, but a forbidden access review does not.
func TestForbiddenAccessReviewsAreNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		reviews := gopftest.Requests("create", "selfsubjectaccessreviews")
		c.Fault(reviews.From(1), gopftest.Fail(403))
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", new(calls).handler("create"))
		gopftest.Start(t, op, c)
		time.Sleep(time.Hour)
		if n := c.Count(reviews); n == 0 || n > 20 {
			t.Errorf("%d access reviews within an hour", n)
		}
	})
}
