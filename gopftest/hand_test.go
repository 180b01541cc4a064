package gopftest_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// everywhere runs a test on an in-memory cluster and, if there is one, on a real
// cluster. The methods of the cluster must behave the same on both.
func everywhere(t *testing.T, test func(t *testing.T, c *gopftest.Cluster)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Setenv(gopftest.Variable, "")
		test(t, gopftest.AnyCluster(t, "v1/configmaps"))
	})
	if os.Getenv(gopftest.Variable) == "" {
		return
	}
	t.Run("real", func(t *testing.T) { test(t, gopftest.AnyCluster(t, "v1/configmaps")) })
}

func jar(name string, size int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "testing.gopf.dev/v1", "kind": "Jar",
		"metadata": map[string]any{"name": name, "namespace": "jars-for-tests"}, "spec": map[string]any{"size": int64(size)},
	}}
}

func size(u *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
	return n
}

const (
	jars   = "testing.gopf.dev/v1/jars"
	inJars = "jars-for-tests"
)

func TestConformingObjectMethods(t *testing.T) {
	everywhere(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Load(t, "testdata/crd.yaml")
		created := c.Create(t, jar("a", 2))
		if created.GetUID() == "" {
			t.Errorf("created %v", created)
		}
		empty := jar("b", 0)
		unstructured.RemoveNestedField(empty.Object, "spec", "size")
		if n := size(c.Create(t, empty)); n != 1 {
			t.Errorf("the default is %d", n)
		}
		for _, name := range []string{jars, "jars", "jar", "jr", "Jar"} {
			if n := size(c.Get(t, name, inJars, "a")); n != 2 {
				t.Errorf("%s: the size is %d", name, n)
			}
		}
		if n := size(c.Patch(t, jars, inJars, "a", map[string]any{"spec": map[string]any{"size": 3}})); n != 3 {
			t.Errorf("patched to %d", n)
		}
		c.PatchStatus(t, jars, inJars, "a", `{"status":{"full":true}}`)
		obj := c.Get(t, jars, inJars, "a")
		_ = unstructured.SetNestedField(obj.Object, int64(4), "spec", "size")
		updated := c.Update(t, obj)
		if full, _, _ := unstructured.NestedBool(updated.Object, "status", "full"); size(updated) != 4 || !full {
			t.Errorf("updated to %v", updated)
		}
		_ = unstructured.SetNestedField(updated.Object, "open", "status", "lid")
		if lid, _, _ := unstructured.NestedString(c.UpdateStatus(t, updated).Object, "status", "lid"); lid != "open" {
			t.Errorf("the lid is %q", lid)
		}
		if n := len(c.List(t, jars, inJars)); n != 2 {
			t.Errorf("listed %d", n)
		}
		c.Delete(t, jars, inJars, "a")
		c.WaitGone(t, jars, inJars, "a")
		if _, ok := c.Lookup(t, jars, inJars, "a"); ok {
			t.Error("the object still exists")
		}
	})
}

func TestConformingWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Load(t, "testdata/crd.yaml")
		go func() {
			c.Create(t, jar("late", 1))
			c.Patch(t, jars, inJars, "late", `{"spec":{"size":9}}`)
		}()
		got := gopftest.Wait(t, c, jars, inJars, "late", func(u *unstructured.Unstructured) bool { return size(u) == 9 })
		if got.GetName() != "late" {
			t.Errorf("waited for %v", got)
		}
		items := c.WaitList(t, jars, inJars, func(all []*unstructured.Unstructured) bool { return len(all) == 1 })
		if items[0].GetName() != "late" {
			t.Errorf("waited for %v", items)
		}
	})
}

func TestConformingOperators(t *testing.T) {
	everywhere(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Load(t, "testdata/crd.yaml")
		gopftest.Start(t, jarOperator(), c, gopf.Namespaces(inJars))
		c.Create(t, jar("a", 5))
		c.Wait(t, jars, inJars, "a", func(u *unstructured.Unstructured) bool { return u.GetLabels()["filled"] == "yes" })
		c.Delete(t, jars, inJars, "a")
		c.WaitGone(t, jars, inJars, "a")
	})
}

func TestConformingPrograms(t *testing.T) {
	everywhere(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Load(t, "testdata/crd.yaml")
		program := gopftest.RunCommand(t, jarOperator(), c, "run", "--namespace", inJars)
		c.Create(t, jar("a", 5))
		c.Wait(t, jars, inJars, "a", func(u *unstructured.Unstructured) bool { return u.GetLabels()["filled"] == "yes" })
		c.Delete(t, jars, inJars, "a")
		c.WaitGone(t, jars, inJars, "a")
		if code := program.Stop(); code != 0 {
			t.Errorf("the program exited with %d", code)
		}
		if !strings.Contains(program.Output(), "Handler 'fill' succeeded.") {
			t.Errorf("the output is %q", program.Output())
		}
	})
}

func TestProgramsShowTheirRequestsOnlyWithDebug(t *testing.T) {
	for flag, want := range map[string]bool{"--debug": true, "--verbose": false} {
		c := gopftest.NewCluster(t)
		c.Load(t, "testdata/crd.yaml")
		program := gopftest.RunCommand(t, jarOperator(), c, "run", "--all-namespaces", "--standalone", flag)
		c.Create(t, jar("a", 5))
		c.Wait(t, jars, inJars, "a", func(u *unstructured.Unstructured) bool { return u.GetLabels()["filled"] == "yes" })
		program.Stop()
		for _, line := range []string{"API request. method=PATCH path=", "API stream opened. method=GET path=", "API stream closed. method=GET path="} {
			if strings.Contains(program.Output(), line) != want {
				t.Errorf("with %s, the output has %q: %v", flag, line, !want)
			}
		}
		if strings.Contains(program.Output(), "labelSelector=") || strings.Contains(program.Output(), "watch=true") {
			t.Errorf("with %s, queries are logged", flag)
		}
	}
}

func jarOperator() *gopf.Operator {
	op := gopf.New()
	jars := op.Resource(jars)
	jars.OnCreate("fill", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		c.Patch.Label("filled", "yes")
		return nil
	})
	jars.OnDelete("empty", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
	return op
}

func TestProgramsReportWrongArguments(t *testing.T) {
	c := gopftest.NewCluster(t)
	program := gopftest.RunCommand(t, gopf.New(), c, "run", "--what")
	if code := program.ExitCode(); code != 2 || !strings.Contains(program.Output(), "--what") {
		t.Errorf("exit code %d, output %q", code, program.Output())
	}
}

func TestMemoryOnlyMethodsPanicOnRealClusters(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "only on in-memory clusters") {
			t.Errorf("panicked with %v", v)
		}
	}()
	path := gopftest.NewCluster(t).Kubeconfig(t)
	gopftest.RealCluster(t, path).Expire()
}
