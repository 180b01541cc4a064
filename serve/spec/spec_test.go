package spec

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const head = "apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: x}\n"

// mistakes are files with one mistake each, and what is reported.
var mistakes = []struct{ name, text, want string }{
	{"no YAML", "a: [", "operator.yaml:1: read YAML"},
	{"empty", "", "operator.yaml:1: the file is empty"},
	{"version", "apiVersion: v2\nkind: Operator\nmetadata: {name: x}\n" + one("on: [create], exec: [./run]"), `operator.yaml:1: apiVersion is "v2"`},
	{"kind", "apiVersion: gopf.dev/v1\nkind: operator\nmetadata: {name: x}\n" + one("on: [create], exec: [./run]"), `operator.yaml:1: kind is "operator"`},
	{"no name", "apiVersion: gopf.dev/v1\nkind: Operator\n" + one("on: [create], exec: [./run]"), "operator.yaml:1: metadata.name is missing"},
	{"bad name", "apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: X}\n" + one("on: [create], exec: [./run]"), `operator.yaml:3: metadata.name "X"`},
	{"no resources", head, "operator.yaml:1: resources are missing"},
	{"unknown key", head + "resorces: []\n" + one("on: [create], exec: [./run]"), `operator.yaml:4: unknown key "resorces" (did you mean "resources"?)`},
	{"key twice", head + one("on: [create], on: [update], exec: [./run]"), `operator.yaml:7: the key "on" is given twice`},
	{"no list", head + one("on: create, exec: [./run]"), "operator.yaml:7: resources[0].handlers[0].on must be a list"},
	{"no number", head + one("on: [create], exec: [./run], processes: many"), "processes must be a whole number"},
	{"no boolean", head + one("on: [create], exec: [./run], keep: 1"), "keep must be true or false"},
	{"no unit", head + one("timer: 10, exec: [./run]"), "timer must be a duration with a unit"},
	{"no resource", head + "resources:\n  - handlers: [{id: h, on: [create], exec: [./run]}]\n", "operator.yaml:5: resource is missing"},
	{"no handlers", head + "resources:\n  - {resource: example.com/v1/things}\n", "operator.yaml:5: resource example.com/v1/things has no handlers"},
	{"no definition", head + "resources:\n  - {resource: example.com/v1/things, definition: crd.yml, handlers: [{id: h, on: [create], exec: [./run]}]}\n", `operator.yaml:5: definition: there is no file "crd.yml"`},
	{"no id", head + "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - {on: [create], exec: [./run]}\n", "operator.yaml:7: id is missing"},
	{"id twice", head + one("on: [create], exec: [./run]") + "      - {id: h, on: [update], exec: [./run]}\n", `operator.yaml:8: id "h" is used twice`},
	{"bad id", head + "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - {id: a b, on: [create], exec: [./run]}\n", `operator.yaml:7: id "a b"`},
	{"no family", head + one("exec: [./run]"), "operator.yaml:7: handler \"h\" must have exactly one of on, timer"},
	{"two families", head + one("on: [create], timer: 1s, exec: [./run]"), "must have exactly one of on, timer"},
	{"bad reason", head + one("on: [created], exec: [./run]"), `on has "created"`},
	{"event and create", head + one("on: [event, create], exec: [./run]"), "event cannot be combined"},
	{"no way", head + one("on: [create]"), "must have exactly one of exec, http, cel and template"},
	{"two ways", head + one("on: [create], exec: [./run], cel: x"), "must have exactly one of exec, http, cel and template"},
	{"no program", head + one("on: [create], exec: [./runn]"), `there is no executable "./runn"`},
	{"not executable", head + one("on: [create], exec: [./text]"), `"./text" is not executable`},
	{"bad variable", head + one("on: [create], exec: [./run], env: [A B]"), `env has "A B"`},
	{"reserved variable", head + one("on: [create], exec: [./run], env: [GOPF_NAME=x]"), "names with GOPF_ are reserved"},
	{"bad URL", head + one("on: [create], http: {url: localhost/x}"), `"localhost/x" is not an http or https URL`},
	{"key without certificate", head + one("on: [create], http: {url: 'http://x', keyFile: k}"), "certFile and keyFile belong together"},
	{"two tokens", head + one("on: [create], http: {url: 'http://x', tokenFile: k, tokenSecret: {name: a, namespace: b}}"), "use one of tokenFile and tokenSecret"},
	{"keep without exec", head + one("on: [create], http: {url: 'http://x'}, keep: true"), "keep belongs to exec"},
	{"idle without timer", head + one("on: [create], exec: [./run], idle: 1s"), "idle does not apply"},
	{"retries of a review", head + one("validate: true, exec: [./run], retries: 1"), "retries does not apply"},
	{"negative retries", head + one("on: [create], exec: [./run], retries: -1"), "retries is negative"},
	{"negative duration", head + one("on: [create], exec: [./run], backoff: -1s"), "a duration is negative"},
	{"bad onError", head + one("on: [create], exec: [./run], onError: ignore"), `onError is "ignore"`},
	{"bad operation", head + one("validate: true, exec: [./run], operations: [create]"), `operations has "create"`},
	{"message without cel", head + one("validate: true, exec: [./run], message: x"), "message belongs to cel"},
	{"hook as a daemon", head + one("daemon: true, http: {url: 'http://x'}"), "a daemon needs exec without keep"},
	{"owns nothing", head + one("reconcile: {}, exec: [./run]"), "reconcile.owns is missing"},
	{"children without reconcile", head + one("on: [create], children: [{id: a, template: {}}]"), "children does not apply"},
	{"children and exec", head + one("reconcile: {owns: [v1/pods]}, exec: [./run], children: [{id: a, template: {}}]"), "has children and a call"},
	{"unknown dependency", head + one("reconcile: {owns: [v1/pods]}, children: [{id: a, dependsOn: [b], template: {}}]"), `child "a" depends on "b"`},
	{"no template", head + one("reconcile: {owns: [v1/pods]}, children: [{id: a, template: none.yaml}]"), `there is no file "none.yaml"`},
	{"bad condition", head + "resources:\n  - {resource: example.com/v1/things, where: {labels: {a: {is: b}}}, handlers: [{id: h, on: [create], exec: [./run]}]}\n", `labels: the condition of "a"`},
}

// one is a resource with one handler.
func one(handler string) string {
	return "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - {id: h, " + handler + "}\n"
}

func files(text string) fstest.MapFS {
	return fstest.MapFS{
		"operator.yaml": {Data: []byte(text)},
		"run":           {Mode: 0o755},
		"text":          {Mode: 0o644},
	}
}

func TestMistakesAreReportedWithTheirLines(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			_, problems := Load(files(m.text), "operator.yaml")
			if !strings.Contains(problems.Error(), m.want) {
				t.Errorf("got %v", problems)
			}
		})
	}
}

func TestACorrectFileHasNoProblems(t *testing.T) {
	for _, handler := range []string{
		"on: [create, update], exec: [./run, a], retries: 0, backoff: 0, timeout: 1h, env: [A, B=c]",
		"on: [event], exec: [sh], keep: true, processes: 3",
		"field: spec.size, http: {url: 'https://x/y'}",
		"timer: 1h, idle: 1m, sharp: true, cel: '{}'",
		"daemon: true, exec: [./run]",
		"validate: true, cel: 'true', message: no, operations: [CREATE]",
		"mutate: true, template: {patch: {}}",
		"reconcile: {owns: [v1/pods], every: 1h}, children: [{id: a, template: {}}, {id: b, dependsOn: [a], template: {}}]",
	} {
		op, problems := Load(files(head+one(handler)), "operator.yaml")
		if len(problems) > 0 || op.Resources[0].Handlers[0].Family() == None {
			t.Errorf("%s: got %v", handler, problems)
		}
	}
}

func TestAnAliasToItselfIsAProblem(t *testing.T) {
	if _, problems := Load(files("metadata: &a {name: x, b: *a}\n"), "operator.yaml"); len(problems) == 0 {
		t.Error("no problem")
	}
}

func TestTheIdentityIsADomainName(t *testing.T) {
	for name, want := range map[string]string{"x": "x.gopf.dev", "x.example.com": "x.example.com"} {
		if got := (&Operator{Metadata: Metadata{Name: name}}).Identity(); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestThePublishedSchemaIsThatOfTheTypes(t *testing.T) {
	want, err := json.MarshalIndent(Schema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../operator.schema.json")
	if err != nil || string(got) != string(want)+"\n" {
		t.Errorf("serve/operator.schema.json differs: run 'gopf schema > serve/operator.schema.json' (%v)", err)
	}
}
