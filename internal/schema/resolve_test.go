package schema

import (
	"errors"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

var databases = kind.Info{Group: "example.com", Version: "v1", Plural: "databases", Kind: "Database"}

// published is a document as the API server publishes it. Its schema of databases has
// one property for each construct of OpenAPI that matters.
const published = `{
	"openapi": "3.0.0", "info": {"title": "Kubernetes"},
	"paths": {"/apis/example.com/v1/databases": {"get": {"x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Database"}}}},
	"components": {"securitySchemes": {"x": {}}, "schemas": {
		"com.example.v1.DatabaseList": {"type": "object", "properties": {"items": {"type": "array"}},
			"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "DatabaseList"}]},
		"com.example.v1.Database": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Database"}], "properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"allOf": [{"$ref": "#/components/schemas/meta.ObjectMeta"}], "default": {}},
			"status": {"type": "object"},
			"spec": {"type": "object", "properties": {
				"host": {"type": "string", "nullable": true},
				"port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
				"users": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
				"limits": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Quantity"}},
				"zones": {"type": "object", "additionalProperties": {"type": "object", "properties": {"size": {"type": "integer"}}}},
				"options": {"type": "object", "additionalProperties": true},
				"closed": {"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}}},
				"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "object", "properties": {"x": {"type": "string"}}}}},
				"any": {},
				"template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}},
				"raw": {"$ref": "#/components/schemas/RawExtension"},
				"lost": {"$ref": "#/components/schemas/Nothing"},
				"loop": {"$ref": "#/components/schemas/Loop"},
				"choice": {"type": "object", "oneOf": [{"required": ["a"]}, {"properties": {"b": {"type": "string"}}}], "properties": {"a": {"type": "string"}}}
			}}}},
		"meta.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}}}},
		"Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
		"RawExtension": {"type": "object"},
		"Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]}
	}}}`

func TestPathsInSchemas(t *testing.T) {
	d, err := readDocument(strings.NewReader(published), []kind.Info{databases}, usual())
	if err != nil {
		t.Fatal(err)
	}
	raw, found := d.of(databases)
	if !found {
		t.Fatal("the schema was not found")
	}
	const exists, unknown, list, plain = "exists", "unknown", "list", "plain value"
	for path, want := range map[string]string{
		"kind": exists, "spec": exists, "sepc": "0", "sepc.host": "0",
		"metadata.name": exists, "metadata.labels.x": exists, "metadata.lables": "1",
		"spec.host": exists, "spec.hosst": "1", "spec.host.x": plain, "spec.port": exists, "spec.port.x": plain,
		"spec.users": exists, "spec.users.0": list, "spec.users.name": list,
		"spec.limits.cpu": exists, "spec.limits.cpu.x": plain, "spec.zones.a.size": exists, "spec.zones.a.sice": "3",
		"spec.options.a": unknown, "spec.options.a.b": unknown, "spec.closed.a": exists, "spec.closed.b": "2",
		"spec.free.x": unknown, "spec.free.known.x": exists, "spec.free.known.y": "3", "spec.any.x": unknown,
		"spec.template.metadata.name": unknown, "spec.template.spec.a": exists, "spec.template.spec.b": "3", "spec.template.status": "2",
		"spec.raw.x": unknown, "spec.lost.x": unknown, "spec.loop.x": unknown,
		"spec.choice.a": exists, "spec.choice.b": exists, "spec.choice.c": "2",
		"status": exists, "status.phase": "1",
	} {
		if got := describe(d.find(raw, strings.Split(path, "."))); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if f := d.find(raw, jsonvalue.Path{"spec", "closed", "b"}); strings.Join(f.Known, " ") != "a" {
		t.Errorf("the known fields are %q", f.Known)
	}
}

func TestOtherKindsHaveNoSchema(t *testing.T) {
	d, err := readDocument(strings.NewReader(published), []kind.Info{databases}, usual())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []kind.Info{
		{Group: "example.com", Version: "v2", Kind: "Database"}, {Group: "example.org", Version: "v1", Kind: "Database"}, {Group: "example.com", Version: "v1", Kind: "Table"},
	} {
		if _, found := d.of(info); found {
			t.Errorf("%v has a schema", info)
		}
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	l := limits{document: 20_000, schemas: 3000, schema: 1000}
	read := func(text string) (document, error) { return readDocument(strings.NewReader(text), nil, l) }
	long := func(n int) string { return `{"description": "` + strings.Repeat("x", n) + `"}` }

	d, err := read(`{"paths": {"/a": ` + long(5000) + `}, "components": {"schemas": {"long": ` + long(1000) + `, "short": {}}}}`)
	if err != nil || len(d) != 1 || d["short"] == nil {
		t.Errorf("got %d schemas and %v; the long one must be left out", len(d), err)
	}
	several := `{"components": {"schemas": {"a": ` + long(900) + `, "b": ` + long(900) + `, "c": ` + long(900)
	if d, err := read(several + `}}}`); err != nil || len(d) != 3 {
		t.Errorf("got %d schemas and %v", len(d), err)
	}
	if d, err := read(several + `, "d": ` + long(900) + `}}}`); err == nil {
		t.Errorf("%d schemas were kept", len(d))
	}
	endless := &repeated{text: " "}
	_, err = readDocument(endless, nil, l)
	if _, large := errors.AsType[*tooLargeError](err); !large || endless.n > 2*l.document {
		t.Errorf("read %d bytes: %v", endless.n, err)
	}
}

func TestOnlySchemasOfWantedKindsAreKept(t *testing.T) {
	d, err := readDocument(strings.NewReader(published), []kind.Info{databases}, usual())
	if err != nil || d["com.example.v1.DatabaseList"] != nil || d["com.example.v1.Database"] == nil || d["meta.ObjectMeta"] == nil {
		t.Errorf("got %d schemas, %v", len(d), err)
	}
}

// repeated is an endless document.
type repeated struct {
	text string
	n    int
}

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[0]
	}
	r.n += len(p)
	return len(p), nil
}

func TestBrokenDocumentsAreErrors(t *testing.T) {
	for _, text := range []string{"", "[]", `{"components": {"schemas": {"x": {`, "<html>"} {
		if _, err := readDocument(strings.NewReader(text), nil, usual()); err == nil {
			t.Errorf("%q: no error", text)
		}
		if _, err := readIndex(strings.NewReader(text), "x"); err == nil && !strings.Contains(text, "components") {
			t.Errorf("%q: no error for an index", text)
		}
	}
	if _, err := readIndex(errReader{}, "x"); err == nil {
		t.Error("no error for a broken connection")
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }
