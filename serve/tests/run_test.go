package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
