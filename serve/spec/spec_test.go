package spec

import (
	"encoding/json"
	"fmt"
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
	{"negative duration", head + one("on: [create], exec: [./run], backoff: -1s"), `operator.yaml:7: handler "h": backoff is negative: -1s`},
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
	{"bad condition in a list", head + filtered("labels: {a: [{is: b}]}"), `labels: the condition of "a" must be a value`},
	{"no alternatives", head + filtered("labels: {tier: []}"), `operator.yaml:7: labels: the condition of "tier" is an empty list`},
	{"no alternatives of an annotation", head + filtered("annotations: {tier: []}"), `annotations: the condition of "tier" is an empty list`},
	{"no alternatives of a field", head + filtered("fields: {spec.tier: []}"), `fields: the condition of "spec.tier" is an empty list`},
	{"all alternatives", head + filtered("labels: {tier: {not: []}}"), `matches all objects`},
	{"bad label", head + filtered("labels: {a b: c}"), `operator.yaml:7: labels: "a b" is not a label`},
	{"bad label value", head + filtered("labels: {tier: [a, b c]}"), `the condition of "tier" has "b c", which no label can have`},
	{"number as a label", head + filtered("labels: {tier: {not: 3}}"), `the condition of "tier" is 3, which is not a text; put it in quotes`},
	{"bad annotation", head + filtered("annotations: {a/b/c: d}"), `annotations: "a/b/c" is not an annotation`},
	{"boolean as an annotation", head + filtered("annotations: {a: true}"), `is true, which is not a text`},
	{"empty part of a path", head + one("field: spec..size, exec: [./run]"), `operator.yaml:7: handler "h": field: the path "spec..size" has an empty part`},
	{"empty part of a filter", head + filtered("fields: {spec.: 1}"), `fields: the path "spec." has an empty part`},
	{"bad pointer", head + one("field: /spec/a~b, exec: [./run]"), "a tilde is written as ~0"},
	{"resource twice", head + one("on: [create], exec: [./run]") + "  - {resource: example.com/v1/things, handlers: [{id: i, on: [create], exec: [./run]}]}\n", "operator.yaml:8: warning: resource example.com/v1/things is declared twice, first in line 5"},
	{"negative timer", head + one("timer: -1h, exec: [./run]"), `operator.yaml:7: handler "h": timer is -1h0m0s`},
	{"no interval", head + one("timer: 0s, exec: [./run]"), `handler "h": timer is 0s; use an interval of more than 0`},
	{"negative idle", head + one("timer: 1h, idle: -1s, exec: [./run]"), "idle is negative: -1s"},
	{"negative delay", head + one("timer: 1h, initialDelay: -1s, exec: [./run]"), "initialDelay is negative: -1s"},
	{"negative timeout", head + one("on: [create], timeout: -1s, exec: [./run]"), "timeout is negative: -1s"},
	{"negative callTimeout", head + one("on: [create], callTimeout: -1s, exec: [./run]"), "callTimeout is negative: -1s"},
	{"negative processes", head + one("on: [create], processes: -1, exec: [./run]"), "processes is negative: -1"},
	{"negative maxOutput", head + one("on: [create], maxOutput: -1, exec: [./run]"), "maxOutput is negative: -1"},
	{"negative interval of a reconciliation", head + one("reconcile: {owns: [v1/pods], every: -1s}, exec: [./run]"), "reconcile.every is negative: -1s"},
	{"negative timeout of an activity", head + one("on: [create], exec: [./run]") + "startup: [{id: s, exec: [./run], timeout: -1s}]\n", `operator.yaml:8: handler "s": timeout is negative: -1s`},
	{"bad port", head + one("on: [create], exec: [./run]") + "webhook: {service: s, port: -1}\n", "operator.yaml:8: webhook.port is -1"},
	{"text as a program", head + one("on: [create], exec: ./run"), "exec must be a list"},
	{"number as a reason", head + one("on: [5], exec: [./run]"), "on[0] must be a text"},
	{"number as an id", head + "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - {id: 5, on: [create], exec: [./run]}\n", "id must be a text"},
	{"number as a resource", head + "resources:\n  - {resource: 5, handlers: [{id: h, on: [create], exec: [./run]}]}\n", "resource must be a text"},
	{"text as resources", head + "resources: things\n", "resources must be a list"},
	{"text as handlers", head + "resources:\n  - {resource: example.com/v1/things, handlers: create}\n", "handlers must be a list"},
	{"text as a handler", head + "resources:\n  - {resource: example.com/v1/things, handlers: [create]}\n", "handlers[0] must be a map"},
	{"text as children", head + one("reconcile: {owns: [v1/pods]}, children: a"), "children must be a list"},
	{"text as metadata", "apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: x\n" + one("on: [create], exec: [./run]"), "operator.yaml:3: metadata must be a map"},
	{"misspelled type", head + one("tmier: 1h, exec: [./run]"), `unknown key "tmier" in resources[0].handlers[0] (did you mean "timer"?)`},
	{"misspelled call", head + one("on: [create], exce: [./run]"), `unknown key "exce" in resources[0].handlers[0] (did you mean "exec"?)`},
	{"key of many lines", head + "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - id: h\n        timer: 1h\n        idle: -1s\n        exec: [./run]\n", "operator.yaml:9: handler \"h\": idle is negative"},
	{"condition of many lines", head + "resources:\n  - resource: example.com/v1/things\n    where:\n      labels:\n        a: b\n        tier: []\n    handlers: [{id: h, on: [create], exec: [./run]}]\n", "operator.yaml:9: labels: the condition of \"tier\""},
	{"merged text", head + one("<<: x, on: [create], exec: [./run]"), "operator.yaml:7: the merge key << must have a map"},
	{"aliased handler", head + "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - &h {id: h, on: [create], exec: [./run]}\n      - *h\n", `operator.yaml:8: id "h" is used twice`},
}

// filtered is a resource with one handler that has a filter.
func filtered(where string) string { return one("on: [create], exec: [./run], where: {" + where + "}") }

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
			if strings.Contains(problems.Error(), "regex") {
				t.Errorf("the message has a regular expression: %v", problems)
			}
			if len(problems) != 1 {
				t.Errorf("one mistake has %d problems: %v", len(problems), problems)
			}
		})
	}
}

func TestMergeKeysAddTheKeysThatAMapDoesNotHave(t *testing.T) {
	op, problems := Load(files(head+`resources:
  - resource: example.com/v1/things
    handlers:
      - &a {id: a, on: [create], exec: [./run], retries: 3, backoff: 1s}
      - &b {id: b, <<: *a, retries: 4}
      - {<<: [{id: c, backoff: 2s}, *b]}
`), "operator.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i, want := range []string{"a 3 1s", "b 4 1s", "c 4 2s"} {
		h := op.Resources[0].Handlers[i]
		if got := fmt.Sprint(h.ID, " ", *h.Retries, " ", *h.Backoff); got != want || h.Way() != Exec || h.Line != 7+i {
			t.Errorf("got %s in line %d", got, h.Line)
		}
	}
}

func TestAMapThatIsMergedIntoItselfIsAProblem(t *testing.T) {
	for _, text := range []string{"metadata: &a {name: x, <<: *a}\n", "metadata: &a {name: x, <<: [*a, *a, *a]}\n", "settings: &a {<<: [*a, *a]}\n"} {
		if _, problems := Load(files(text), "operator.yaml"); !strings.Contains(problems.Error(), "operator.yaml:1: the file has more than 1000 merged maps") {
			t.Errorf("%s: got %v", text, problems)
		}
	}
}

func TestAResourceMayBeDeclaredTwiceWithDifferentFilters(t *testing.T) {
	text := head + "resources:\n"
	for _, tier := range []string{"a", "b"} {
		text += "  - {resource: example.com/v1/things, where: {labels: {tier: " + tier + "}}, handlers: [{id: h, on: [create], exec: [./run]}]}\n"
	}
	if _, problems := Load(files(text), "operator.yaml"); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestWarningsAreNoError(t *testing.T) {
	var problems Problems
	problems.Warn(Pos{"a", 1}, "b")
	if err := problems.Err(); err != nil {
		t.Error(err)
	}
	problems.Add(Pos{"a", 2}, "c")
	if err := problems.Err(); err == nil || err.Error() != "a:2: c" {
		t.Errorf("got %v", err)
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
		"on: [create], exec: [sh], where: {labels: {a.b/c: [x, '', null, {not: y}], d: {not: [x, y]}}, annotations: {A/b: 'x y'}, fields: {spec.a: 3, /spec/b.c: {exists: true}}}",
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
