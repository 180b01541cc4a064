package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/permissions"
)

// edit replaces a part of a file of the project.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), from, to, 1)
	if edited == string(text) {
		t.Fatalf("%s has no %q", path, from)
	}
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
}

func runGopf(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = run(newInterrupt(), args, &out, &out)
	return out.String(), code
}

// A handler sends a request that is not declared: --learn prints the declaration, and with
// this line the tests pass with exactly the new permissions.
func TestLearnedDeclarationsPassTheVerification(t *testing.T) {
	t.Parallel()
	folder := newProject(t, "demo")
	code := filepath.Join(folder, "operator.go")
	edit(t, code, "	message := ", `	if err := c.API.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "greeting-"}}); err != nil {
		return err
	}
	message := `)
	edit(t, code, "	return op\n", "	objects.WithLabel(\"rare\", gopf.Is(\"yes\")).OnDelete(\"rare\", farewell)\n	return op\n")
	edit(t, code, "func greet(_ context.Context", "func greet(ctx context.Context")
	edit(t, code, "\"time\"\n", "\"time\"\n\n\tcorev1 \"k8s.io/api/core/v1\"\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n")
	tests := filepath.Join(folder, "operator_test.go")
	edit(t, tests, "gopftest.AnyCluster(t)", `gopftest.NewCluster(t, "v1/configmaps")`)
	only := []string{"--", "-run=TestCreateUpdateDelete", "."}

	out, exit := runGopf(t, append([]string{"permissions", "--learn", folder}, only...)...)
	line := regexp.MustCompile(`(?m)^  (gopf\.RegisterType.*) // handler greet at demo/operator\.go:\d+$`).FindStringSubmatch(out)
	if exit != 0 || line == nil || strings.Count(out, "gopf.RegisterType") != 1 {
		t.Fatalf("exit code %d: %s", exit, out)
	}
	edit(t, code, "	objects := ", "	"+line[1]+"\n	objects := ")
	if out, exit = runGopf(t, "manifests", folder); exit != 0 || !strings.Contains(out, "rbac.yaml is written") {
		t.Fatalf("exit code %d: %s", exit, out)
	}
	out, exit = runGopf(t, append([]string{"permissions", "--verify", folder}, only...)...)
	if exit != 0 || !strings.Contains(out, "The tests pass with exactly the permissions of") {
		t.Errorf("with the declaration: exit code %d: %s", exit, out)
	}
	if !strings.Contains(out, "not called: no test calls the handler rare at demo/operator.go:") || strings.Count(out, "not called: ") != 1 {
		t.Errorf("the handlers that no test calls are not named: %s", out)
	}
}

func TestTheTableNamesTheTests(t *testing.T) {
	used := permissions.Permission{Verb: "watch", Resource: "pods", Sources: []permissions.Source{{Setting: "x"}}}
	named := permissions.Permission{Verb: "get", Resource: "pods", Name: "a", Sources: []permissions.Source{{Setting: "x"}}}
	failing := permissions.Permission{Verb: "list", Resource: "pods", Sources: []permissions.Source{{Setting: "x", Failures: true}}}
	requests := []request{
		{Verb: "watch", Resource: "pods", Test: "TestA"}, {Verb: "watch", Resource: "pods", Test: "TestA", Handler: "x"},
		{Verb: "watch", Resource: "pods", Test: "TestB"}, {Verb: "watch", Resource: "pods", Test: "TestC"}, {Verb: "get", Resource: "pods", Name: "b", Test: "TestA"},
	}
	for want, p := range map[string]permissions.Permission{"TestA and 2 more": used, "(none)": named, "(only after failures)": failing} {
		if got := testsOf(p, requests); got != want {
			t.Errorf("%s: got %q, want %q", p, got, want)
		}
	}
	d := *loaded(t)
	var out bytes.Buffer
	if err := d.printPermissions(&out, []request{{Verb: "create", Resource: "events", Test: "TestEvents"}}); err != nil || !regexp.MustCompile(`(?m)^create events +TestEvents +setting Posting\.Enabled`).MatchString(out.String()) {
		t.Errorf("got %v, %s", err, out.String())
	}
}

func TestHandlersThatNoTestCalledAreNamed(t *testing.T) {
	handlers := []describe.Handler{
		{ID: "a", Family: describe.Change, Where: "x.go:1"}, {ID: "b", Family: describe.Timer, Where: "x.go:2"},
		{ID: "b", Family: describe.Event, Where: "x.go:3"}, {ID: "start", Family: describe.Startup, Where: "x.go:4"},
	}
	got := uncalled(handlers, []request{{Handler: "b at x.go:2", Test: "TestB"}, {Handler: "other at x.go:1"}})
	if len(got) != 2 || got[0].Where != "x.go:1" || got[1].Where != "x.go:3" {
		t.Errorf("got %v", got)
	}
}
