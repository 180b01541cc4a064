package gopftest

import (
	"fmt"
	"testing"
)

// as applies a patch as a given field manager.
func (s *script) as(manager, path, patch string) reply {
	s.t.Helper()
	return s.call("PATCH", path+"fieldManager="+manager, patch, "Content-Type: application/apply-patch+yaml")
}

func applying() []behaviour {
	const a = widgets + "/a?"
	return []behaviour{
		{"apply creates and changes", func(t *testing.T, s *script) {
			s.as("one", a, widget("a", `"labels":{"x":"y"}`, `"spec":{"a":1,"b":{"c":2,"d":3}},"status":{"ignored":1}`))
			s.as("one", a, widget("a", `"labels":{"x":"y"}`, `"spec":{"a":1,"b":{"c":2,"d":3}}`))
			s.as("one", a, widget("a", `"labels":{"x":"z"}`, `"spec":{"a":2,"b":{"c":2}}`))
			s.as("one", a, "apiVersion: conformance.gopf.dev/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  a: 3\n")
		}},
		{"managers share an object", func(t *testing.T, s *script) {
			s.as("one", a, widget("a", "", `"spec":{"a":1,"both":1}`))
			s.as("two", a, widget("a", "", `"spec":{"b":1,"both":1}`))
			s.as("one", a, widget("a", "", `"spec":{"a":2}`))
			s.as("two", a, widget("a", "", `"spec":{}`))
			s.call("PATCH", widgets+"/a?fieldManager=three", `{"spec":{"free":1}}`)
			s.as("one", a, widget("a", "", ""))
		}},
		{"managers conflict", func(t *testing.T, s *script) {
			s.as("one", a, widget("a", "", `"spec":{"a":1,"b":1}`))
			s.as("two", a, widget("a", "", `"spec":{"a":2,"b":2}`))
			s.as("two", a, widget("a", "", `"spec":{"a":1}`))
			s.as("two", a+"force=true&", widget("a", "", `"spec":{"a":3}`))
			s.as("one", a, widget("a", "", `"spec":{"a":1,"b":1}`))
			s.call("PATCH", widgets+"/a?fieldManager=three", `{"spec":{"b":5}}`)
			s.as("one", a, widget("a", "", `"spec":{"b":1}`))
			s.as("one", a+"force=true&", widget("a", "", `"spec":{"b":1}`))
		}},
		{"lists in metadata merge, others are whole", func(t *testing.T, s *script) {
			s.as("one", a, widget("a", `"finalizers":["a.dev/1"]`, `"spec":{"list":[1,2]}`))
			s.as("two", a, widget("a", `"finalizers":["a.dev/2"]`, ""))
			s.as("two", a, widget("a", "", `"spec":{"list":[3]}`))
			s.as("one", a, widget("a", "", ""))
			s.send("PATCH", widgets+"/a", `{"metadata":{"finalizers":null}}`)
		}},
		{"apply the status", func(t *testing.T, s *script) {
			s.as("one", widgets+"/a/status?", widget("a", "", `"status":{"s":1}`))
			s.as("one", a, widget("a", "", `"spec":{"a":1}`))
			s.as("one", widgets+"/a/status?", widget("a", `"labels":{"x":"y"}`, `"spec":{"a":2},"status":{"s":1}`))
			s.as("one", widgets+"/a/status?", widget("a", "", `"status":{"t":1}`))
			s.as("one", a, widget("a", "", `"spec":{"a":1}`))
		}},
		{"bad applies are refused", func(t *testing.T, s *script) {
			s.call("PATCH", widgets+"/a", widget("a", "", ""), "Content-Type: application/apply-patch+yaml")
			s.as("one", a, widget("b", "", ""))
			s.as("one", a, widget("a", `"namespace":"default"`, ""))
			s.note(s.send("PATCH", a+"fieldManager=one", "{", "Content-Type: application/apply-patch+yaml").code)
			s.note(s.send("PATCH", a+"fieldManager=one", `{"metadata":{"name":"a"}}`, "Content-Type: application/apply-patch+yaml").code)
			s.note(s.send("PATCH", a+"fieldManager=one", gadget("a", ""), "Content-Type: application/apply-patch+yaml").code)
			s.as("one", a, widget("a", `"managedFields":[{"manager":"x"}]`, ""))
			r := s.as("one", a, widget("a", "", `"spec":{"a":1}`))
			s.as("one", a, widget("a", `"resourceVersion":"1"`, `"spec":{"a":2}`))
			s.as("one", a, widget("a", `"resourceVersion":"`+r.version()+`"`, `"spec":{"a":2}`))
			s.as("one", a, widget("a", `"uid":"x"`, ""))
		}},
		{"an apply with a version that no object has only creates", func(t *testing.T, s *script) {
			s.as("one", a+"force=true&", widget("a", `"resourceVersion":"1"`, `"spec":{"a":1}`))
			s.as("one", a+"force=true&", widget("a", `"resourceVersion":"1"`, `"spec":{"a":2}`))
			s.as("one", a+"force=true&", widget("a", `"resourceVersion":"1"`, `"spec":{"a":1}`))
			s.as("one", a, widget("a", "", `"spec":{"b":1}`))
			const config = "/api/v1/namespaces/{ns}/configmaps/a?"
			manifest := func(metadata, value string) string {
				return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"` + metadata + `},"data":{"a":"` + value + `"}}`
			}
			s.as("one", config+"force=true&", manifest(`,"resourceVersion":"1"`, "1"))
			s.as("one", config+"force=true&", manifest(`,"resourceVersion":"1"`, "2"))
			s.as("two", config+"force=true&", manifest(`,"resourceVersion":"1"`, "3"))
			s.as("one", config, manifest("", "4"))
		}},
		{"schemas tell how to merge", func(t *testing.T, s *script) {
			order := func(spec string) string {
				return `{"apiVersion":"conformance.gopf.dev/v1","kind":"Order","metadata":{"name":"a"},"spec":` + spec + `}`
			}
			s.as("one", orders+"/a?", order(`{"item":"tea","what":1}`))
			s.as("one", orders+"/a?", order(`{"item":"tea"}`))
			s.as("two", orders+"/a?", order(`{"count":5}`))
			s.as("two", orders+"/a?", order(`{}`))
			s.as("one", orders+"/a?", order(`{}`))
		}},
		{"well-known kinds merge by their keys", func(t *testing.T, s *script) {
			const pods = "/api/v1/namespaces/{ns}/pods/a"
			pod := func(containers string) string {
				return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"automountServiceAccountToken":false,"containers":[` + containers + `]}}`
			}
			images := func(r reply) {
				s.note(r.code)
				for _, c := range toList(r.get("spec", "containers")) {
					m := c.(map[string]any)
					s.note(fmt.Sprint(m["name"], " ", m["image"]))
				}
			}
			const apply = "Content-Type: application/apply-patch+yaml"
			images(s.send("PATCH", pods+"?fieldManager=one", pod(`{"name":"x","image":"1"},{"name":"y","image":"1"}`), apply))
			images(s.send("PATCH", pods+"?fieldManager=two", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"y","image":"2"}]}}`, apply))
			images(s.send("PATCH", pods+"?fieldManager=two&force=true", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"y","image":"2"}]}}`, apply))
			images(s.send("PATCH", pods, `{"spec":{"containers":[{"name":"x","image":"3"}]}}`, "Content-Type: application/strategic-merge-patch+json"))
		}},
	}
}
