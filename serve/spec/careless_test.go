package spec

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryProblemHasAFileAndALine(t *testing.T) {
	const head = "apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: dbs}\nresources:\n  - resource: example.com/v1/databases\n    handlers:\n"
	for text, want := range map[string]string{
		head + "      - null\n":     "operator.yaml:7: id is missing",
		head + "      - [a]\n":      "operator.yaml:7: resources[0].handlers[0] must be a map",
		head + "      - &x [*x]\n":  "operator.yaml:7: resources[0].handlers[0] must be a map",
		head + "\t- {id: a}\n":      "operator.yaml:7: read YAML: line 7: found character",
		"":                          "operator.yaml:1: the file is empty",
		"hello\n":                   "operator.yaml:1: the document must be a map",
		"\x7fELF\x00\xff":           "operator.yaml:1: read YAML: control characters are not allowed",
		head + "---\nkind: Other\n": "operator.yaml:8: the file has a second document",
	} {
		_, problems := Load(fstest.MapFS{"operator.yaml": {Data: []byte(text)}}, "operator.yaml")
		if !strings.Contains(problems.Error(), want) {
			t.Errorf("%q: got %v", text, problems)
		}
		for _, p := range problems {
			if p.Pos.File != "operator.yaml" || p.Pos.Line < 1 {
				t.Errorf("%q: no position: %v", text, p)
			}
		}
	}
}
