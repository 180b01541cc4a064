package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/object"
)

// plannable returns an operator whose children have the values of version. Its reconcile
// handler reads an index, and writes with its client.
func plannable(diary *calls, version string) *gopf.Operator {
	op := owning()
	x := gopf.For[*Example](op, resource)
	names := gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
		return map[string]string{"all": s.Object.Name}, nil
	})
	x.OnUpdate("resize", func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("resize %s", ch.Object.Name)
		return nil
	})
	x.Reconcile("children", func(ctx context.Context, r *gopf.Reconciliation[*Example]) error {
		if r.Object.Name == "broken" {
			return gopf.Permanent(errors.New("no children today"))
		}
		if names.Count("all") == 0 {
			return errors.New("the index is empty")
		}
		if err := r.API.Apply(ctx, childMap("direct", version)); err != nil {
			return err
		}
		for _, item := range r.Object.Spec.Items {
			if version == "v2" && item == "two" {
				continue
			}
			gopf.Want(r, childMap(item, r.Object.Spec.Field+version))
		}
		return nil
	}, gopf.Owns[*corev1.ConfigMap]())
	return op
}

// planned returns the plan as text, and fails the test if anything is stored.
func planned(t *testing.T, c *gopftest.Cluster, op *gopf.Operator, r insight.Planning) (*insight.Plan, string) {
	t.Helper()
	before := len(c.Writes())
	var plan *insight.Plan
	var out bytes.Buffer
	err := commands(t, c, op).Plan(t.Context(), r, func(p *insight.Plan) error {
		plan = p
		return p.Write(&out, r.Everything)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Writes()[before:] {
		if !strings.Contains(w.Path, "dryRun=All") {
			t.Errorf("the plan stored %s %s", w.Method, w.Path)
		}
	}
	return plan, out.String()
}

func actions(p *insight.Plan) (all []string) {
	for _, o := range p.Objects {
		for _, c := range o.Children {
			all = append(all, c.Action+" "+c.Child.Name)
		}
	}
	slices.Sort(all)
	return all
}

func TestPlansRehearseAnUpgradeAndTheUpgradeDoesTheSame(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		stop := gopftest.Start(t, plannable(&diary, "v1"), c)
		c.Create(t, withItems("a", "x", "one", "two"))
		c.Create(t, withItems("b", "x", "other"))
		settle()
		stop()
		if p, text := planned(t, c, plannable(&diary, "v1"), insight.Planning{Everything: true}); len(p.Objects) != 0 || p.Seen != 2 || p.Fails("change") {
			t.Errorf("the same version has something to do: %s", text)
		}
		p, text := planned(t, c, plannable(&diary, "v2"), insight.Planning{Everything: true})
		want := []string{"change one", "change other", "delete two"}
		if got := actions(p); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, line := range []string{"1  KopfExample: change ConfigMap data.key, delete ConfigMap  (default/a)", "1  KopfExample: change ConfigMap data.key  (default/b)", "2 of 2 objects have something to do"} {
			if !strings.Contains(text, line) {
				t.Errorf("the plan has no line %q:\n%s", line, text)
			}
		}
		if !p.Fails("change") || !p.Fails("delete") || p.Fails("recreate") {
			t.Errorf("the classes of the plan are wrong: %s", text)
		}
		_, text = planned(t, c, plannable(&diary, "v2"), insight.Planning{Objects: insight.Objects{Names: []insight.Name{objectNamed("b")}}})
		if !strings.Contains(text, "children: change ConfigMap other: the desired content of ConfigMap other has changed\n    change data.key  \"xv1\" → \"xv2\"") {
			t.Errorf("got\n%s", text)
		}
		seen := len(c.Writes())
		gopftest.Start(t, plannable(&diary, "v2"), c)
		settle()
		done := slices.DeleteFunc(changes(c, &seen), func(w string) bool {
			return !strings.Contains(w, "configmaps/") || strings.Contains(w, "/direct")
		})
		if slices.Sort(done); !slices.Equal(done, []string{"delete configmaps/two", "patch configmaps/one", "patch configmaps/other"}) {
			t.Errorf("the upgrade did %q", done)
		}
		if got := diary.all(); len(got) != 0 {
			t.Errorf("change handlers were called: %q", got)
		}
	})
}

func TestPlansOfManifestsShowTheHandlersAndChildrenOfTheChange(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plannable(&diary, "v1")
		stop := gopftest.Start(t, op, c)
		c.Create(t, withItems("a", "x", "one"))
		settle()
		stop()
		manifest := func(name string) *object.Body {
			b, err := object.FromMap(map[string]any{
				"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"tier": "prod"}},
				"spec": map[string]any{"field": "y", "items": []any{"three"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		p, text := planned(t, c, op, insight.Planning{Manifests: []*object.Body{manifest("a"), manifest("new")}})
		if got, want := actions(p), []string{"create three", "create three", "delete one"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if !strings.Contains(text, "KopfExample default/a: update: calls resize now\n  resize: would be called") || len(diary.all()) != 0 {
			t.Errorf("got %q and\n%s", diary.all(), text)
		}
		if _, stored := c.Lookup(t, resource, "default", "new"); stored {
			t.Error("the manifest was stored")
		}
	})
}

func TestPlansNameObjectsThatCannotBePlanned(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		c.Create(t, withItems("broken", "x", "one"))
		p, text := planned(t, c, plannable(&diary, "v1"), insight.Planning{Everything: true})
		if p.Problems() != 1 || !strings.Contains(text, "not planned") {
			t.Errorf("got\n%s", text)
		}
	})
}

func TestThePlanCommandExitsWith2IfThereIsSomethingToDo(t *testing.T) {
	c := gopftest.NewCluster(t, resource, configMaps, "v1/namespaces")
	var diary calls
	op := plannable(&diary, "v1")
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := cli.Run(t.Context(), op, append(args, "--kubeconfig", c.Kubeconfig(t)), &out, &out)
		return code, out.String()
	}
	file := filepath.Join(t.TempDir(), "new.yaml")
	manifest := "# a comment\n---\napiVersion: kopf.dev/v1\nkind: KopfExample\nmetadata: {name: x, namespace: default}\nspec: {field: a, items: [one]}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"plan", "--all", "--all-namespaces"}, 0, "0 of 0 objects"},
		{[]string{"plan", "--file", file}, 2, "create ConfigMap one"},
		{[]string{"plan", "--file", file, "-o", "json"}, 2, `"action": "create"`},
		{[]string{"plan", "--file", file, "--fail-on", "delete,recreate"}, 0, "create ConfigMap one"},
		{[]string{"plan", "--file", file, "--fail-on", "everything"}, 2, "use change, delete or recreate"},
		{[]string{"plan", "kopfexamples/none"}, 1, "not found"},
		{[]string{"plan"}, 2, "nothing is named"},
		{[]string{"plan", "--all"}, 2, "choose the namespaces"},
	} {
		if code, out := run(test.args...); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%q: got %d and %s, want %d and %q", test.args, code, out, test.code, test.want)
		}
	}
	if got := fmt.Sprint(diary.all()); got != "[]" {
		t.Errorf("handlers were called: %s", got)
	}
}
