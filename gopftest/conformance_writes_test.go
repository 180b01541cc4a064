package gopftest

import (
	"strings"
	"testing"
)

const (
	widgets = "/apis/conformance.gopf.dev/v1/namespaces/{ns}/widgets"
	gadgets = "/apis/conformance.gopf.dev/v1/gadgets"
	orders  = "/apis/conformance.gopf.dev/v1/namespaces/{ns}/orders"
)

// widget returns the JSON of a widget, with extra fields in the metadata and at the top
// level.
func widget(name, metadata, rest string) string {
	join := func(s string) string {
		if s == "" {
			return ""
		}
		return "," + s
	}
	return `{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","metadata":{"name":"` + name + `"` + join(metadata) + `}` + join(rest) + `}`
}

func gadget(name, rest string) string {
	return strings.Replace(widget(name, "", rest), "Widget", "Gadget", 1)
}

func creating() []behaviour {
	return []behaviour{
		{"create sets system fields and drops status", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"labels":{"x":"y"},"annotations":{"n":"1"}`, `"spec":{"size":1,"ratio":0.5},"status":{"s":1}`))
			s.call("GET", widgets+"/a", "")
		}},
		{"create overrides what only the server may set", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"uid":"mine","generation":7,"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":5,"selfLink":"/x","unknown":1`, `"spec":{}`))
		}},
		{"create keeps status where it is no subresource", func(t *testing.T, s *script) {
			s.send("DELETE", gadgets+"/{ns}", "")
			s.call("POST", gadgets, gadget("{ns}", `"spec":{"a":1},"status":{"s":1}`))
			s.call("PATCH", gadgets+"/{ns}", `{"status":{"s":2}}`)
			s.call("GET", gadgets+"/{ns}/status", "")
			s.call("DELETE", gadgets+"/{ns}", "")
		}},
		{"create twice conflicts", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			s.call("POST", widgets, widget("a", "", ""))
		}},
		{"create with a resource version is refused", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"resourceVersion":"1"`, ""))
		}},
		{"create in a missing namespace is refused", func(t *testing.T, s *script) {
			s.call("POST", "/apis/conformance.gopf.dev/v1/namespaces/{ns}-missing/widgets", widget("a", "", ""))
		}},
		{"create in another namespace than the body's is refused", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"namespace":"default"`, ""))
		}},
		{"create of a cluster-wide object with a namespace is refused", func(t *testing.T, s *script) {
			s.call("POST", gadgets, strings.Replace(gadget("{ns}", ""), `"name"`, `"namespace":"default","name"`, 1))
		}},
		{"create with bad names is refused", func(t *testing.T, s *script) {
			for _, name := range []string{"", "UPPER", "a_b", "-a", "a/b", "a%b", strings.Repeat("a", 254)} {
				s.call("POST", widgets, widget(name, "", ""))
			}
		}},
		{"create with bad metadata is refused", func(t *testing.T, s *script) {
			for _, meta := range []string{
				`"labels":{"-bad":"x"}`, `"labels":{"a":"not a label value"}`, `"annotations":{"bad key":"x"}`,
				`"finalizers":["no slash"]`, `"finalizers":["ok.dev/x","orphan","foregroundDeletion"]`,
				`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":""}]`,
				`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"y","uid":"2","controller":true}]`,
			} {
				s.call("POST", widgets, widget("a", meta, ""))
			}
		}},
		{"create with metadata of wrong types is refused", func(t *testing.T, s *script) {
			for _, meta := range []string{`"labels":{"a":1}`, `"labels":[]`, `"finalizers":"x"`, `"annotations":"x"`} {
				s.note(s.send("POST", widgets, widget("a", meta, "")).code)
			}
		}},
		{"create with a foreign kind or version is refused", func(t *testing.T, s *script) {
			s.call("POST", widgets, strings.Replace(widget("a", "", ""), "Widget", "Gadget", 1))
			s.call("POST", widgets, strings.Replace(widget("a", "", ""), "dev/v1", "dev/v2", 1))
			s.note(s.send("POST", widgets, `{"metadata":{"name":"a"}}`).code)
			s.note(s.send("POST", widgets, `{"apiVersion":"conformance.gopf.dev/v1","metadata":{"name":"a"}}`).code)
		}},
		{"create with a broken body is refused", func(t *testing.T, s *script) {
			for _, body := range []string{`{`, `[]`, `"x"`, `null`, ``} {
				s.note(body, s.send("POST", widgets, body).code)
			}
			s.note(s.send("POST", widgets, widget("a", "", ""), "Content-Type: text/plain").code)
			s.note(s.send("POST", widgets, widget("a", "", ""), "Content-Type: application/json; charset=utf-8").code)
		}},
		{"generated names", func(t *testing.T, s *script) {
			body := `{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","metadata":{"generateName":"gen-"}}`
			r := s.send("POST", widgets, body)
			name := r.get("metadata", "name").(string)
			s.note(r.code, len(name), strings.HasPrefix(name, "gen-"), r.get("metadata", "generateName"))
			long := s.send("POST", widgets, strings.Replace(body, "gen-", strings.Repeat("g", 80), 1))
			s.note(long.code, len(long.get("metadata", "name").(string)))
			both := s.send("POST", widgets, strings.Replace(body, `"generateName"`, `"name":"own","generateName"`, 1))
			s.note(both.code, both.get("metadata", "name"))
			s.note(s.send("POST", widgets, strings.Replace(body, "gen-", "Bad_", 1)).code)
		}},
		{"dry runs change nothing", func(t *testing.T, s *script) {
			r := s.send("POST", widgets+"?dryRun=All", widget("a", "", ""))
			s.note(r.code, r.get("metadata", "resourceVersion"))
			s.call("GET", widgets+"/a", "")
			s.call("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.call("PATCH", widgets+"/a?dryRun=All", `{"spec":{"a":2}}`)
			s.note(s.send("DELETE", widgets+"/a?dryRun=All", "").code)
			s.call("GET", widgets+"/a", "")
			s.call("DELETE", widgets+"/a?dryRun=Some", "")
			s.call("PATCH", widgets+"/a?dryRun=Some", "{}")
			s.call("POST", widgets+"?dryRun=Some", widget("b", "", ""))
		}},
		{"annotations are limited", func(t *testing.T, s *script) {
			fits, tooMuch := strings.Repeat("x", 256<<10-1), strings.Repeat("x", 256<<10)
			s.note(s.send("POST", widgets, widget("a", `"annotations":{"a":"`+fits+`"}`, "")).code)
			s.call("POST", widgets, widget("b", `"annotations":{"a":"`+tooMuch+`"}`, ""))
			s.call("PATCH", widgets+"/a", `{"metadata":{"annotations":{"b":""}}}`)
		}},
	}
}

func updating() []behaviour {
	return []behaviour{
		{"update replaces all but status", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"labels":{"x":"y"}`, `"spec":{"size":1}`))
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":1}}`)
			r := s.send("GET", widgets+"/a", "")
			s.call("PUT", widgets+"/a", widget("a", `"resourceVersion":"`+r.version()+`"`, `"spec":{"size":2},"status":{"s":2}`))
			s.call("GET", widgets+"/a", "")
		}},
		{"update of an unchanged object keeps the version", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", `"spec":{"size":1}`))
			s.call("PUT", widgets+"/a", widget("a", `"resourceVersion":"`+r.version()+`"`, `"spec":{"size":1}`))
		}},
		{"update without a version is refused", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			s.call("PUT", widgets+"/a", widget("a", "", `"spec":{}`))
			s.call("PUT", widgets+"/a", widget("a", `"resourceVersion":"x"`, ""))
		}},
		{"update with a stale version conflicts", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", ""))
			s.call("PATCH", widgets+"/a", `{"spec":{"a":1}}`)
			s.call("PUT", widgets+"/a", widget("a", `"resourceVersion":"`+r.version()+`"`, ""))
		}},
		{"update with another uid conflicts", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", ""))
			conflict := s.send("PUT", widgets+"/a", widget("a", `"uid":"00000000-0000-0000-0000-000000000000","resourceVersion":"`+r.version()+`"`, ""))
			s.note(conflict.code, conflict.get("reason"))
		}},
		{"update of another name is refused", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", ""))
			s.call("PUT", widgets+"/a", widget("b", `"resourceVersion":"`+r.version()+`"`, ""))
			s.call("PUT", widgets+"/missing", widget("missing", `"resourceVersion":"`+r.version()+`"`, ""))
		}},
		{"update cannot change what only the server may set", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", ""))
			s.call("PUT", widgets+"/a", widget("a", `"generation":9,"creationTimestamp":"2001-01-01T00:00:00Z","resourceVersion":"`+r.version()+`"`, ""))
			s.call("PUT", widgets+"/a", widget("a", `"deletionTimestamp":"2001-01-01T00:00:00Z","resourceVersion":"`+r.version()+`"`, ""))
		}},
		{"generation counts changes of anything but metadata and status", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"a":2}}`, `{"other":1}`, `{"status":{"a":1}}`} {
				s.note(patch, s.send("PATCH", widgets+"/a", patch).get("metadata", "generation"))
			}
			s.note(s.send("PATCH", widgets+"/a/status", `{"status":{"a":1}}`).get("metadata", "generation"))
			s.send("DELETE", gadgets+"/{ns}", "")
			s.note(s.send("POST", gadgets, gadget("{ns}", `"status":{}`)).get("metadata", "generation"))
			s.note(s.send("PATCH", gadgets+"/{ns}", `{"status":{"a":1}}`).get("metadata", "generation"))
			s.send("DELETE", gadgets+"/{ns}", "")
		}},
	}
}

func patching() []behaviour {
	return []behaviour{
		{"merge patch", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"annotations":{"a":"1","b":"2"}`, `"spec":{"list":[1,2],"map":{"a":1,"b":2}}`))
			s.call("PATCH", widgets+"/a", `{"metadata":{"annotations":{"a":null,"c":"3"}},"spec":{"list":[3],"map":{"b":null,"c":{"d":null,"e":1}}}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"annotations":null},"spec":null}`)
		}},
		{"a merge patch that changes nothing keeps the version", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"annotations":{"a":"1"}`, `"spec":{"a":1}`))
			s.call("PATCH", widgets+"/a", `{"metadata":{"annotations":{"a":"1"}},"spec":{"a":1,"b":null}}`)
			s.call("PATCH", widgets+"/a", `{}`)
			s.call("PATCH", widgets+"/a", `{"status":{"ignored":true}}`)
		}},
		{"a merge patch with a stale version conflicts", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", ""))
			next := s.call("PATCH", widgets+"/a", `{"metadata":{"resourceVersion":"`+r.version()+`"},"spec":{"a":1}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"resourceVersion":"`+r.version()+`"},"spec":{"a":2}}`)
			s.call("PATCH", widgets+"/a/status", `{"metadata":{"resourceVersion":"`+r.version()+`"},"status":{"a":2}}`)
			s.call("PATCH", widgets+"/a/status", `{"metadata":{"resourceVersion":"`+next.version()+`"},"status":{"a":2}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"resourceVersion":null},"spec":{"a":2}}`)
		}},
		{"a merge patch cannot change identity", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			s.call("PATCH", widgets+"/a", `{"metadata":{"name":"b"}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"namespace":"default"}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"uid":"x"}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"uid":null,"creationTimestamp":null,"generation":null,"generateName":"x-"}}`)
			s.call("PATCH", widgets+"/a", `{"kind":"Other"}`)
			s.call("PATCH", widgets+"/a", `{"metadata":null}`)
			s.note(s.send("PATCH", widgets+"/a", `{"apiVersion":"conformance.gopf.dev/v2"}`).code)
			s.note(s.send("PATCH", widgets+"/a", `{"kind":null}`).code)
		}},
		{"broken patches are refused", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			for _, patch := range []string{`{`, `[]`, `"x"`, `1`, `null`, ``} {
				s.note(patch, s.send("PATCH", widgets+"/a", patch, "Content-Type: application/merge-patch+json").code)
			}
			for _, patch := range []string{`{`, `{}`, `[{"op":"replace"}]`, `[{"op":"what","path":"/spec"}]`, `[{"op":"replace","path":"/spec/a","value":1}]`, `[{"op":"remove","path":"/spec/a"}]`, `[{"op":"add","path":"/spec/a/b","value":1}]`, `[]`} {
				s.note(patch, s.send("PATCH", widgets+"/a", patch, "Content-Type: application/json-patch+json").code)
			}
			s.call("PATCH", widgets+"/a", `{}`, "Content-Type: application/strategic-merge-patch+json")
			s.call("PATCH", widgets+"/a", `{}`, "Content-Type: application/json")
			s.call("PATCH", widgets+"/missing", `{}`)
			s.call("PATCH", widgets+"/missing", `[]`)
		}},
		{"JSON patch", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", `"finalizers":["a.dev/1"]`, `"spec":{"a":1}`))
			s.call("PATCH", widgets+"/a", `[{"op":"add","path":"/metadata/finalizers/-","value":"a.dev/2"},{"op":"replace","path":"/spec/a","value":{"b":2}},{"op":"add","path":"/spec/a~1b","value":true}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"test","path":"/metadata/resourceVersion","value":"`+r.version()+`"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"test","path":"/metadata/finalizers/0","value":"a.dev/1"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"test","path":"/metadata/finalizers/5","value":"a.dev/1"}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"replace","path":"/metadata/resourceVersion","value":"`+r.version()+`"}]`)
		}},
	}
}
