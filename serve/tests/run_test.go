package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheTestsOfTheSamplePass(t *testing.T) {
	var out strings.Builder
	if err := Run(t.Context(), "../testdata/database/operator_test.yaml", Options{Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if strings.Count(out.String(), "ok ") != 7 {
		t.Errorf("got\n%s", &out)
	}
}

// sample copies the sample operator and replaces its tests.
func sample(t *testing.T, tests string) (file string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/database")); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "operator_test.yaml")
	if err := os.WriteFile(file, []byte(tests), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFailuresNameWhatDiffers(t *testing.T) {
	for name, c := range map[string]struct{ tests, want string }{
		"value":      {"- {name: x, handler: small, object: {spec: {size: 101}}, expect: {deny: other}}", `deny is "at most 100, not 101", not "other"`},
		"unexpected": {"- {name: x, handler: small, object: {spec: {size: 101}}}", "the output has deny, which is not expected"},
		"missing":    {"- {name: x, handler: small, object: {spec: {size: 1}}, expect: {deny: '*'}}", "the output has no deny"},
		"handler":    {"- {name: x, handler: smal, object: {}}", `there is no handler \"smal\" (did you mean \"small\"?)`},
		"until":      {"- {name: x, steps: [{apply: db.yaml}, {until: 'false', within: 50ms}]}", "not within 50ms: false; the object is"},
		"golden":     {"- {name: x, handler: children, object: db.yaml, expect: {children: none.yaml, status: {settings: false}}}", "--update writes it"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := Run(t.Context(), sample(t, c.tests), Options{Out: &out})
			if err == nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("got %v\n%s", err, &out)
			}
		})
	}
}

func TestMistakesInTestsAreReportedWithTheirLines(t *testing.T) {
	for tests, want := range map[string]string{
		"- {name: x, handler: small, objekt: {}}":          `operator_test.yaml:1: unknown key "objekt" in [0] (did you mean "object"?)`,
		"- name: x\n- {name: y}":                           "operator_test.yaml:1: test \"x\" must have either a handler or steps",
		"- {name: x, steps: [{delete: true, gone: true}]}": "operator_test.yaml:1: a step must have one of",
	} {
		if err := Run(t.Context(), sample(t, tests), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", tests, err)
		}
	}
}

func TestUpdateWritesGoldenFiles(t *testing.T) {
	file := sample(t, "- {name: x, handler: children, object: db.yaml, expect: {children: new.yaml, status: {settings: false}}}")
	var out strings.Builder
	if err := Run(t.Context(), file, Options{Update: true, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	written, err := os.ReadFile(filepath.Join(filepath.Dir(file), "new.yaml"))
	golden, err2 := os.ReadFile("../testdata/database/children.golden.yaml")
	if err != nil || err2 != nil || string(written) != string(golden) {
		t.Errorf("got %s, %v, %v", written, err, err2)
	}
	if err := Run(t.Context(), file, Options{Out: &out}); err != nil {
		t.Error(err)
	}
}

// operatorIn writes an operator with one handler, a shell script, and a test of its life.
func operatorIn(t *testing.T, script string) (file string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"operator.yaml": `
apiVersion: gopf.dev/v1
kind: Operator
metadata: {name: databases}
resources:
  - resource: example.com/v1/databases
    handlers:
      - {id: provision, on: [create], exec: [./provision.sh]}
`,
		"provision.sh": "#!/bin/sh\ncat >/dev/null\n" + script,
		"operator_test.yaml": `
- name: life
  steps:
    - apply: {apiVersion: example.com/v1, kind: Database, metadata: {name: db}, spec: {size: 1}}
    - {until: "${object.status.?phase.orValue('') == 'Ready'}", within: 30s}
- name: one call
  handler: provision
  object: {metadata: {name: db}}
  expect: {apply: [{kind: ConfigMap}], status: {phase: Ready}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // the script must be executable
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "operator_test.yaml")
}

// applying is a script that applies a ConfigMap.
const applying = `echo '{"apply": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db-'%s'"}}], "status": {"phase": "Ready"}}'
`

func TestAnIdempotentOperatorPassesWithACrashAtEveryWrite(t *testing.T) {
	var out strings.Builder
	err := Run(t.Context(), operatorIn(t, fmt.Sprintf(applying, "one")), Options{Crash: true, Out: &out})
	var crashes int
	if _, bad := fmt.Sscanf(out.String(), "ok    life (%d crashes)", &crashes); err != nil || bad != nil || crashes < 4 {
		t.Errorf("got %v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "ok    one call\n") {
		t.Errorf("got\n%s", &out)
	}
}

func TestAnOperatorThatDoesItsWorkTwiceFailsWithCrashes(t *testing.T) {
	file := operatorIn(t, fmt.Sprintf(applying, "$$")) // another name in each call
	var out strings.Builder
	if err := Run(t.Context(), file, Options{Out: &out}); err != nil {
		t.Errorf("without crashes: %v\n%s", err, &out)
	}
	out.Reset()
	err := Run(t.Context(), file, Options{Crash: true, Out: &out})
	if err == nil || !strings.Contains(out.String(), "FAIL  life (operator_test.yaml:2)\n      crash after write ") ||
		!strings.Contains(out.String(), "(PATCH /api/v1/namespaces/default/configmaps/db-") ||
		!strings.Contains(out.String(), "v1/configmaps in default: at the end, there are 1 objects too many") {
		t.Errorf("got %v\n%s", err, &out)
	}
}

func TestStatesAreComparedWithoutTheirAccidentalParts(t *testing.T) {
	object := func(name string, status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": "u", "resourceVersion": "7"}, "status": status}}
	}
	of := func(objects ...*unstructured.Unstructured) state {
		s := state{"v1/pods": {}}
		for _, o := range objects {
			s["v1/pods"][o.GetName()] = essential(o)
		}
		return s
	}
	want := agreed(
		of(object("a", map[string]any{"at": "2026-01-02T03:04:05Z", "key": "x1", "n": int64(1)}), object("b-1", "s")),
		of(object("a", map[string]any{"at": "2026-01-02T03:04:06Z", "key": "x2", "n": int64(1)}), object("b-2", "s")))
	for name, c := range map[string]struct {
		got  state
		want string
	}{
		"same":    {of(object("a", map[string]any{"at": "2027-01-02T03:04:06Z", "key": "x3", "n": int64(1)}), object("b-3", "s")), "[]"},
		"value":   {of(object("a", map[string]any{"at": "2027-01-02T03:04:06Z", "key": "x3", "n": int64(2)}), object("b-3", "s")), "[v1/pods a.status.n is 2, not 1 as without a crash]"},
		"missing": {of(object("b-3", "s")), "[v1/pods: there is no a at the end]"},
		"extra":   {of(object("a", map[string]any{"at": "2027-01-02T03:04:06Z", "n": int64(1)}), object("b-3", "s"), object("b-4", "s")), "[v1/pods: at the end, there are 1 objects too many]"},
		"key":     {of(object("a", map[string]any{"n": int64(1), "m": int64(1)}), object("b-3", "s")), `[v1/pods a.status.at is missing; without a crash, it is "…" v1/pods a.status.m is 1; without a crash, it is missing]`},
	} {
		if found := fmt.Sprint(want.differences(c.got)); found != c.want {
			t.Errorf("%s: got %s", name, found)
		}
	}
}
