package manifest_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"gopf.dev/gopf/client/manifest"
)

type options []struct{ Key, Value string }

type data struct {
	Name    string
	Size    int64
	Share   float64
	On      bool
	Labels  map[string]string
	Args    []string
	Options options
}

func render(text string, d any) (string, error) {
	objects, err := manifest.Render(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, "a.yaml", d)
	if err != nil {
		return "", err
	}
	var all []any
	for _, o := range objects {
		delete(o.Object, "apiVersion")
		delete(o.Object, "kind")
		all = append(all, o.Object)
	}
	raw, err := json.Marshal(all)
	return string(raw), err
}

func TestValuesStayInTheirScalars(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	evil := "x\": {}\nspec: # {{ .Name }}\n  - 'y'\t\\ & * ! | > %"
	d := data{Name: evil, Size: 9007199254740993, Share: 0.5, On: true, Labels: map[string]string{"a: b": evil}, Args: []string{"-v", "no"}, Options: options{{"one", "1"}, {"two", "yes"}}}
	for name, test := range map[string]struct {
		text string
		want map[string]any
	}{
		"a string alone":             {"a: {{ .Name }}", map[string]any{"a": evil}},
		"in double quotes":           {`a: "{{ .Name }}"`, map[string]any{"a": evil}},
		"in single quotes":           {`a: '{{ .Name }}'`, map[string]any{"a": evil}},
		"with text around it":        {"a: db-{{ .Name }}-x", map[string]any{"a": "db-" + evil + "-x"}},
		"in a block":                 {"a: |\n  first\n  {{ .Name }}", map[string]any{"a": "first\n" + evil + "\n"}},
		"as a key":                   {"{{ .Name }}: b", map[string]any{evil: "b"}},
		"in a list":                  {"a: [1, {{ .Name }}]", map[string]any{"a": []any{int64(1), evil}}},
		"in a comment":               {"a: 1 # {{ .Name }}", map[string]any{"a": int64(1)}},
		"a large number":             {"a: {{ .Size }}", map[string]any{"a": int64(9007199254740993)}},
		"a number in quotes":         {`a: "{{ .Size }}"`, map[string]any{"a": "9007199254740993"}},
		"a number with a unit":       {"a: {{ .Size }}Gi", map[string]any{"a": "9007199254740993Gi"}},
		"a fraction and a bool":      {"a: {{ .Share }}\nb: {{ .On }}\nc: 7", map[string]any{"a": 0.5, "b": true, "c": int64(7)}},
		"a map":                      {"a: {{ .Labels }}", map[string]any{"a": map[string]any{"a: b": evil}}},
		"a list":                     {"a: {{ .Args }}", map[string]any{"a": []any{"-v", "no"}}},
		"strings that look like not": {"{{ range .Options }}{{ .Key }}: {{ .Value }}\n{{ end }}", map[string]any{"one": "1", "two": "yes"}},
		"conditions and variables":   {"{{ $n := .Size }}{{ if .On }}a: {{ $n }}{{ else }}b: 1{{ end }}", map[string]any{"a": int64(9007199254740993)}},
		"functions":                  {`a: {{ printf "%s:1" .Name }}`, map[string]any{"a": evil + ":1"}},
		"other templates":            {`{{ define "x" }}a: {{ .Name }}{{ end }}{{ template "x" . }}`, map[string]any{"a": evil}},
		"a value that is a template": {"a: {{ .Name }}", map[string]any{"a": evil}},
	} {
		text, err := render(head+test.text+"\n", d)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, _ := json.Marshal([]any{test.want})
		if text != string(want) {
			t.Errorf("%s:\n got %s\nwant %s", name, text, want)
		}
	}
}

func TestDocumentsAreObjects(t *testing.T) {
	got, err := render("# nothing\n---\napiVersion: v1\nkind: A\na: 1\n---\n{{ if .On }}\napiVersion: v1\nkind: B\n{{ end }}\n---\napiVersion: v1\nkind: C\nc: 3\n", data{})
	if want := `[{"a":1},{"c":3}]`; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestMistakesInTemplatesAreNamed(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	for text, want := range map[string]string{
		head + "a: {{ .Nme }}":                  "can't evaluate field Nme",
		head + "a: {{ .Name":                    "unclosed action",
		head + "a: {{ .Labels.x }}":             `map has no entry for key "x"`,
		head + "a: [{{ .Name }}":                "document 1: yaml: line",
		head + "a: x-{{ .Labels }}":             "a map[string]string is no text",
		head + "{{ .Name }}: 1\n{{ .Name }}: 2": `two values give the key "n"`,
		head + "a: 1\na: 2":                     `"a" already set`,
		"a: 1":                                  "no apiVersion",
		"- 1":                                   "not an object",
		head + "{{ range $i, $x := .Args }}a: 1\n  {{ $x }}: {{ end }}": "document 1",
	} {
		_, err := render(text, data{Name: "n", Labels: map[string]string{}, Args: []string{"p", "q"}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "value"+strings.Repeat("A", 3)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := manifest.Render(fstest.MapFS{}, "b.yaml", nil); err == nil || !strings.Contains(err.Error(), "b.yaml") {
		t.Errorf("a missing file: got %v", err)
	}
}

func FuzzValuesNeverChangeTheStructure(f *testing.F) {
	for _, s := range []string{"x", "a: b", "\n- x", `"`, "'", "{{ .Name }}", "\u2028", "\x00", "&a *a", "!!int 3", "%YAML", "---\n"} {
		f.Add(s)
	}
	const text = "apiVersion: v1\nkind: A\nplain: {{ .Name }}\nquoted: \"{{ .Name }}\"\ninside: a {{ .Name }} b\nlist: [{{ .Name }}, 2]\nblock: |\n  {{ .Name }}\n"
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.ToValidUTF8(name, "?")
		objects, err := manifest.Render(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, "a.yaml", data{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"apiVersion": "v1", "kind": "A", "plain": name, "quoted": name, "inside": "a " + name + " b", "list": []any{name, int64(2)}, "block": name + "\n"}
		if len(objects) != 1 || !reflect.DeepEqual(objects[0].Object, want) {
			t.Errorf("%q: got %v", name, objects)
		}
	})
}

// The values of a template often come from an object that clients of the cluster write.
func TestTemplatesAreLimited(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	files := fstest.MapFS{
		"list.yaml": {Data: []byte(head + "list:\n{{- range .Names }}\n- {{ . }}\n{{- end }}\n")},
		"long.yaml": {Data: []byte(head + "list:\n{{- range .Names }}\n- " + strings.Repeat("x", 1000) + "\n{{- end }}\n")},
	}
	for _, c := range []struct {
		file, text string
		names      int
		want       string // in the error; "" means none
	}{
		{"list.yaml", "a", 20_000, ""},
		{"list.yaml", "a", 20_001, "more than 20000 values"},
		{"list.yaml", strings.Repeat("x", 1<<20), 3, ""},
		{"list.yaml", strings.Repeat("x", 1<<20), 5, "values of more than 4 MiB"},
		{"long.yaml", "a", 5000, "the YAML has more than 4 MiB"},
	} {
		objects, err := manifest.Render(files, c.file, map[string]any{"Names": slices.Repeat([]string{c.text}, c.names)})
		if c.want == "" && (err != nil || len(objects) != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %d names of %d bytes: %d objects, %v", c.file, c.names, len(c.text), len(objects), err)
		}
	}
}
