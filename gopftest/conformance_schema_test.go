package gopftest

import (
	"strings"
	"testing"
)

func validating() []behaviour {
	// with defines a custom resource with a schema for spec, and runs a function on it.
	with := func(properties string, run func(s *script, path string, thing func(name, spec string) string)) func(*testing.T, *script) {
		return func(t *testing.T, s *script) {
			path := "/apis/{ns}.gopf.dev/v1/namespaces/{ns}/things"
			r := s.send("POST", crds, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.{ns}.gopf.dev"},"spec":{
				"group":"{ns}.gopf.dev","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
				"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":`+properties+`}}}}]}}`)
			if r.code != 201 {
				t.Fatalf("define things: %v", r)
			}
			s.eventually("GET", path, func(r reply) bool { return r.code == 200 })
			run(s, path, func(name, spec string) string {
				return `{"apiVersion":"{ns}.gopf.dev/v1","kind":"Thing","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
			})
			s.send("DELETE", crds+"/things.{ns}.gopf.dev", "")
			s.eventually("GET", crds+"/things.{ns}.gopf.dev", func(r reply) bool { return r.code == 404 })
		}
	}
	// each creates one object for every spec.
	each := func(specs ...string) func(*script, string, func(string, string) string) {
		return func(s *script, path string, thing func(string, string) string) {
			for i, spec := range specs {
				s.call("POST", path, thing("t-"+strings.Repeat("x", i+1), spec))
			}
		}
	}
	return []behaviour{
		{"rules of a schema", with(`{"type":"object","properties":{"low":{"type":"integer"},"high":{"type":"integer"}},
			"x-kubernetes-validations":[{"rule":"self.low <= self.high","message":"low is above high"}]}`,
			each(`{"low":1,"high":2}`, `{"low":3,"high":2}`))},
		{"fields that stay as they are", with(`{"type":"object","properties":{"name":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf","message":"it cannot be changed"}]}}}`,
			func(s *script, path string, thing func(string, string) string) {
				s.call("POST", path, thing("a", `{"name":"x"}`))
				s.call("PATCH", path+"/a", `{"spec":{"name":"y"}}`)
				s.call("PATCH", path+"/a", `{"spec":{"name":"x","other":1}}`)
				s.call("PATCH", path+"/a", `{"spec":{"name":null}}`)
			})},
		{"rules with messages of their own", with(`{"type":"object","properties":{"s":{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"self.startsWith('a')","messageExpression":"self + ' does not begin with a'","reason":"FieldValueForbidden"}]}}}`,
			each(`{"s":"apple"}`, `{"s":"pear"}`))},
		{"lists that are sets", with(`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`,
			each(`{"l":["a","b"]}`, `{"l":["a","a"]}`))},
		{"lists that are maps", with(`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}}}}`,
			each(`{"l":[{"k":"a"},{"k":"b"}]}`, `{"l":[{"k":"a"},{"k":"a"}]}`, `{"l":[{"v":1}]}`))},
		{"defaults inside of others", with(`{"type":"object","default":{},"properties":{"a":{"type":"object","default":{},"properties":{"b":{"type":"string","default":"x"},"c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"integer","default":7}}}}}}}}`,
			each(`{}`, `{"a":{"c":[{},{"d":1}]}}`, `{"a":{"b":"y"}}`, `null`))},
		{"null values", with(`{"type":"object","properties":{"may":{"type":"string","nullable":true},"not":{"type":"string"},"default":{"type":"string","default":"d"}}}`,
			each(`{"may":null}`, `{"not":null}`, `{"default":null}`))},
		{"numbers or strings", with(`{"type":"object","properties":{"port":{"x-kubernetes-int-or-string":true}}}`,
			each(`{"port":1}`, `{"port":"http"}`, `{"port":true}`))},
		{"parts of a schema that take anything", with(`{"type":"object","properties":{"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"n":{"type":"integer"}}},"map":{"type":"object","additionalProperties":{"type":"integer"}}}}`,
			each(`{"free":{"x":{"y":1},"n":1},"map":{"a":1},"gone":1}`, `{"free":{"n":"x"}}`, `{"map":{"a":"x"}}`))},
		{"limits of values", with(`{"type":"object","properties":{"s":{"type":"string","maxLength":3,"pattern":"^[a-z]+$"},"n":{"type":"number","exclusiveMinimum":true,"minimum":0,"multipleOf":0.5},"l":{"type":"array","maxItems":1,"minItems":1,"items":{"type":"string"}},"m":{"type":"object","maxProperties":1,"additionalProperties":{"type":"string"}}}}`,
			each(`{"s":"abcd"}`, `{"s":"A"}`, `{"n":0}`, `{"n":0.3}`, `{"l":[]}`, `{"l":["a","b"]}`, `{"m":{"a":"b","c":"d"}}`))},
		{"formats of values", with(`{"type":"object","properties":{"at":{"type":"string","format":"date-time"},"ip":{"type":"string","format":"ipv4"},"u":{"type":"string","format":"uuid"},"what":{"type":"string","format":"unknown"}}}`,
			each(`{"at":"yesterday"}`, `{"at":"2020-01-01T00:00:00Z"}`, `{"ip":"1.2.3"}`, `{"u":"x"}`, `{"what":"x"}`))},
		{"alternatives", with(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			each(`{"a":1}`, `{"a":1,"b":1}`, `{}`))},
		{"wrong types everywhere", with(`{"type":"object","properties":{"b":{"type":"boolean"},"o":{"type":"object"},"l":{"type":"array","items":{"type":"string"}},"n":{"type":"number"}}}`,
			each(`{"b":"true"}`, `{"o":[]}`, `{"l":{}}`, `{"l":[1]}`, `{"n":"1"}`, `[]`, `"x"`))},
		{"old mistakes are put up with", with(`{"type":"object","properties":{"s":{"type":"string"},"t":{"type":"string"}}}`,
			func(s *script, path string, thing func(string, string) string) {
				s.call("POST", path, thing("a", `{"s":"long","t":"x"}`))
				s.send("PATCH", crds+"/things.{ns}.gopf.dev", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/s/maxLength","value":2}]`)
				s.awaitRefusal(path, thing("b", `{"s":"long"}`))
				s.call("PATCH", path+"/a", `{"spec":{"t":"y"}}`)
				s.call("PATCH", path+"/a", `{"spec":{"s":"longer"}}`)
			})},
	}
}

// awaitRefusal waits until a new schema is active. The real API server needs a moment.
func (s *script) awaitRefusal(path, body string) {
	s.t.Helper()
	for range 600 {
		r, err := s.try("POST", path+"?dryRun=All", body)
		if err == nil && r.code == 422 {
			return
		}
		pause()
	}
	s.t.Fatalf("%s: the new schema did not become active", path)
}
