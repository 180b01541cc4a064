package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/permissions"
)

const example = "../../examples/database"

func loaded(t *testing.T) *deployment {
	t.Helper()
	return loadedExample(t, "database")
}

// rule is a rule in a manifest with one of its verbs.
type rule struct{ line, verb int }

// rulesIn returns all verbs of all rules in the lines of a manifest.
func rulesIn(lines []string) (all []rule) {
	for i, line := range lines {
		if verbs, ok := verbsIn(line); ok {
			for n := range verbs {
				all = append(all, rule{i, n})
			}
		}
	}
	return all
}

func verbsIn(line string) ([]string, bool) {
	list, ok := strings.CutPrefix(line, "  verbs: [")
	return strings.Split(strings.TrimSuffix(list, "]"), ", "), ok
}

// without returns the manifest without the rule, and names the rule.
func (r rule) without(lines []string) (manifest, verb string) {
	lines = slices.Clone(lines)
	verbs, _ := verbsIn(lines[r.line])
	verb = verbs[r.verb]
	lines[r.line] = "  verbs: [" + strings.Join(slices.Delete(slices.Clone(verbs), r.verb, r.verb+1), ", ") + "]"
	return strings.Join(lines, "\n"), verb
}

// Every rule that tests can use is used by the tests of the example: without it, they fail.
func TestTheTestsOfTheExampleFailWithoutAnyRule(t *testing.T) {
	t.Parallel()
	d := loaded(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "database.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Dir = example
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(manifest, report string) (string, error) {
		path := filepath.Join(t.TempDir(), "rbac.yaml")
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "-test.failfast", "-test.timeout=2m")
		cmd.Dir = example
		cmd.Env = append(os.Environ(), "GOPF_TEST_AS="+path, "GOPF_TEST_USED="+report)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	lines := strings.Split(string(d.model.Access()), "\n")
	if out, err := run(strings.Join(lines, "\n"), ""); err != nil {
		t.Fatalf("with all rules: %v\n%s", err, out)
	}
	exempt := map[string]bool{}
	for _, p := range d.model.Permissions {
		// The tests of the example run without leader election.
		if p.OnlyFailures() || p.Account == permissions.Operating || p.Resource == "leases" {
			exempt[p.Verb+" "+p.Group+"/"+p.Resource] = true
		}
	}
	tried := 0
	for _, r := range rulesIn(lines) {
		text, verb := r.without(lines)
		place := ruleAt(lines, r.line)
		if exempt[verb+" "+place] {
			continue
		}
		tried++
		_, resource, _ := strings.Cut(place, "/")
		if out, err := run(text, ""); err == nil || !strings.Contains(out, verb+" "+resource) || !strings.Contains(out, "is not granted") {
			t.Errorf("without %s %s: %v\n%s", verb, place, err, out[max(0, len(out)-2000):])
		}
	}
	if tried < 12 {
		t.Errorf("only %d rules were tried", tried)
	}
}

// ruleAt returns the group and the resource of the rule whose verbs are in the line.
func ruleAt(lines []string, line int) string {
	quoted := func(prefix string) string {
		for i := line; ; i-- {
			if text, ok := strings.CutPrefix(lines[i], prefix); ok {
				return strings.Trim(text, `[]"`)
			}
		}
	}
	return quoted("- apiGroups: ") + "/" + quoted("  resources: ")
}

func TestMissingDeclarationsAreLearned(t *testing.T) {
	got := learned([]request{
		{Verb: "patch", Version: "v1", Resource: "configmaps", Handler: "furnish at x.go:3", Denied: true},
		{Verb: "create", Version: "v1", Resource: "configmaps", Handler: "furnish at x.go:3", Denied: true},
		{Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Denied: true},
		{Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments/scale", Handler: "scale at x.go:4", Denied: true},
		{Verb: "list", Version: "v1", Resource: "pods"},
	})
	want := []string{
		`gopf.RegisterType[gopf.Unstructured](op, "apps/v1/deployments", gopf.May("get"))`,
		`gopf.RegisterType[gopf.Unstructured](op, "apps/v1/deployments/scale", gopf.May("patch")) // handler scale at x.go:4`,
		`gopf.RegisterType[gopf.Unstructured](op, "v1/configmaps", gopf.May("create", "patch")) // handler furnish at x.go:3`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPermissionsThatNoTestUsedAreListed(t *testing.T) {
	used := permissions.Permission{Verb: "watch", Resource: "pods", Sources: []permissions.Source{{Setting: "x"}}}
	unused := permissions.Permission{Verb: "patch", Resource: "pods", Sources: []permissions.Source{{Setting: "x"}}}
	failing := permissions.Permission{Verb: "get", Resource: "pods", Sources: []permissions.Source{{Setting: "x", Failures: true}}}
	got := notUsed(permissions.Set{used, unused, failing}, []request{{Verb: "watch", Resource: "pods"}})
	if len(got) != 1 || got[0].Verb != "patch" {
		t.Errorf("got %v", got)
	}
}

// repository returns an empty git repository, and a function that runs git in it.
func repository(t *testing.T) (dir string, git func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet", "--initial-branch=main")
	return dir, git
}

func TestPermissionsAreComparedWithAnotherRevision(t *testing.T) {
	d := *loaded(t)
	dir, git := repository(t)
	former := strings.Replace(string(d.model.Access()), "resources: [\"events\"]\n  verbs: [create]", "resources: [\"pods\"]\n  verbs: [delete]", 1)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "deploy"), 0o755), os.WriteFile(filepath.Join(dir, "deploy", "rbac.yaml"), []byte(former), 0o600)); err != nil {
		t.Fatal(err)
	}
	git("add", "-A")
	git("commit", "--quiet", "-m", "one")
	d.path = dir
	var out bytes.Buffer
	if err := d.printDifference(t.Context(), "main", &out); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^\+ create events \(setting Posting\.Enabled\)\n- delete pods \(ClusterRole database-operator\)\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
	if err := d.printDifference(t.Context(), "none", &out); err == nil || !strings.Contains(err.Error(), "read deploy/rbac.yaml of none") {
		t.Errorf("got %v", err)
	}
}

func TestThePermissionsArePrintedWithTheirSources(t *testing.T) {
	var out bytes.Buffer
	if err := loaded(t).printPermissions(&out, nil); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^patch databases\.techoral\.com/status +handler children at database/operator\.go:\d+, handler create at .*objects wait because the results`)
	if !want.MatchString(out.String()) {
		t.Errorf("got %s", out.String())
	}
}

// A checkout of a project with definitions, in which the check runs.
func TestBreakingChangesAreReportedAgainstTheMergeBase(t *testing.T) {
	d := *loaded(t)
	dir, git := repository(t)
	present, err := os.ReadFile(filepath.Join(example, "deploy", "crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	storage := regexp.MustCompile(`\n( +)storage:\n`)
	former := storage.ReplaceAllString(string(present), "\n${1}gone:\n${1}  type: string\n${1}storage:\n")
	if former == string(present) {
		t.Fatal("the definition has no field storage")
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "deploy"), 0o755), os.WriteFile(filepath.Join(dir, "deploy", "crd.yaml"), []byte(former), 0o600)); err != nil {
		t.Fatal(err)
	}
	git("add", "-A")
	git("commit", "--quiet", "-m", "one")
	d.path = dir
	m := manifestsRun{against: "main"}
	changes, note := m.breaks(t.Context(), &d)
	if note != "" || len(changes) != 1 || changes[0].String() != "databases.techoral.com v1 spec.gone: the field was removed" {
		t.Errorf("got %v, %q", changes, note)
	}
	m.against = "origin/HEAD"
	if changes, note = m.breaks(t.Context(), &d); len(changes) != 0 || !strings.Contains(note, "are not checked: the revision origin/HEAD is not in this clone") {
		t.Errorf("without the revision: got %v, %q", changes, note)
	}

	// The clone has only the last commits of both branches, and not the one before them.
	git("checkout", "--quiet", "-b", "feature")
	git("commit", "--quiet", "--allow-empty", "-m", "two")
	git("checkout", "--quiet", "main")
	git("commit", "--quiet", "--allow-empty", "-m", "three")
	shallow := filepath.Join(t.TempDir(), "clone")
	git("clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=feature", "file://"+dir, shallow)
	d.path, m.against = shallow, "origin/main"
	if changes, note = m.breaks(t.Context(), &d); len(changes) != 0 || !strings.Contains(note, "this clone is shallow and does not contain the merge base with origin/main") {
		t.Errorf("in a shallow clone: got %v, %q", changes, note)
	}
}

func TestFilesThatDifferAreNamedWithTheirLine(t *testing.T) {
	d := loaded(t)
	files := map[string][]byte{"a.yaml": []byte("one\ntwo\n"), "b.yaml": nil}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("one\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	m := manifestsRun{against: "none"}
	err := m.verify(t.Context(), d, dir, files, &out, io.Discard)
	if err == nil || err.Error() != "the manifests have 2 problems" || !strings.Contains(out.String(), "a.yaml differs from the declarations in line 2") || !strings.Contains(out.String(), "b.yaml is missing") {
		t.Errorf("got %v, %q", err, out.String())
	}
}

func TestDefinitionsWrittenByHandAreNotTouched(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "deploy")
	const text = "# By hand.\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: kopf.dev, names: {plural: kopfexamples}, scope: Namespaced}\n"
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "crd.yaml"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	operator := &describe.Operator{Handlers: []describe.Handler{{ID: "x", Family: describe.Change, Where: "x.go:1", Resource: describe.Resource{Text: "kopfexamples"}}}}
	existing, err := (&deployment{folder: folder}).existingDefinitions()
	if err != nil || len(existing) != 1 {
		t.Fatalf("got %v, %v", existing, err)
	}
	options, err := deploy.ReadOptions("none", "x")
	if err != nil {
		t.Fatal(err)
	}
	m := deploy.NewModel(options, operator, nil, existing...)
	files, err := m.Files(nil)
	if err != nil || files["crd.yaml"] != nil || m.Problems != nil || !strings.Contains(string(files["rbac.yaml"]), "kopfexamples") {
		t.Errorf("got %s, %v, %v", files["rbac.yaml"], m.Problems, err)
	}
}
