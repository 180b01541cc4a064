package gopftest

import (
	"fmt"
	"strings"
	"testing"
)

const fleets = "/apis/conformance.gopf.dev/v1/namespaces/{ns}/fleets"

// fleet returns the JSON of an object of a scalable custom resource.
func fleet(name, metadata, rest string) string {
	return strings.Replace(widget(name, metadata, rest), "Widget", "Fleet", 1)
}

func scaleBody(name, metadata string, replicas int) string {
	if metadata != "" {
		metadata = "," + metadata
	}
	return fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":%q%s},"spec":{"replicas":%d}}`, name, metadata, replicas)
}

func scaling() []behaviour {
	const a = fleets + "/a/scale"
	three := fleet("a", `"labels":{"x":"y"}`, `"spec":{"replicas":3,"item":"tea"}`)
	return []behaviour{
		{"scale tells replicas wanted and there", func(t *testing.T, s *script) {
			s.call("POST", fleets, three)
			s.call("GET", a, "")
			s.call("PATCH", fleets+"/a/status", `{"status":{"replicas":2,"selector":"x=y"}}`)
			s.call("GET", a, "")
		}},
		{"scale by update", func(t *testing.T, s *script) {
			r := s.call("POST", fleets, three)
			s.call("PUT", a, scaleBody("a", `"resourceVersion":"`+r.version()+`"`, 5))
			s.call("PUT", a, scaleBody("a", "", 6))
			s.call("GET", fleets+"/a", "")
		}},
		{"scale by merge patch", func(t *testing.T, s *script) {
			s.call("POST", fleets, three)
			s.call("PATCH", a, `{"spec":{"replicas":5}}`)
			s.call("PATCH", a, `{"spec":{"replicas":5}}`)
			s.call("GET", fleets+"/a", "")
		}},
		{"scale by JSON patch", func(t *testing.T, s *script) {
			s.call("POST", fleets, three)
			s.call("PATCH", a, `[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":4}]`)
			s.note(s.send("PATCH", a, `[{"op":"test","path":"/spec/replicas","value":3}]`).code)
		}},
		{"scale changes nothing but replicas", func(t *testing.T, s *script) {
			s.call("POST", fleets, three)
			s.call("PATCH", a, `{"metadata":{"labels":{"x":"z"},"annotations":{"a":"b"}},"spec":{"replicas":1},"status":{"replicas":9,"selector":"z"}}`)
			s.call("GET", fleets+"/a", "")
		}},
		{"scale with a stale version conflicts", func(t *testing.T, s *script) {
			r := s.call("POST", fleets, three)
			s.call("PATCH", fleets+"/a", `{"spec":{"item":"milk"}}`)
			s.call("PUT", a, scaleBody("a", `"resourceVersion":"`+r.version()+`"`, 5))
			s.call("PATCH", a, `{"metadata":{"resourceVersion":"`+r.version()+`"},"spec":{"replicas":5}}`)
		}},
		{"scale of an object without replicas", func(t *testing.T, s *script) {
			s.call("POST", fleets, fleet("a", "", `"spec":{"item":"tea"}`))
			s.call("GET", a, "")
			s.call("PATCH", a, `{"spec":{"replicas":2}}`)
			s.call("GET", fleets+"/a", "")
		}},
		{"bad scales are refused", func(t *testing.T, s *script) {
			s.call("GET", fleets+"/missing/scale", "")
			s.call("PATCH", fleets+"/missing/scale", `{"spec":{"replicas":1}}`)
			s.call("POST", fleets, three)
			s.call("PATCH", a, `{"spec":{"replicas":-1}}`)
			s.note(s.send("PATCH", a, `{"spec":{"replicas":"many"}}`).code)
			s.call("PUT", a, scaleBody("b", "", 1))
			s.note(s.send("PUT", a, three).code)
			s.note(s.send("DELETE", a, "").code, s.send("POST", a, scaleBody("a", "", 1)).code)
		}},
		{"schemas hold for scales", func(t *testing.T, s *script) {
			s.call("POST", fleets, three)
			s.call("PATCH", a, `{"spec":{"replicas":101}}`)
		}},
		{"dry runs do not scale", func(t *testing.T, s *script) {
			s.call("POST", fleets, three)
			s.call("PATCH", a+"?dryRun=All", `{"spec":{"replicas":5}}`)
			s.call("GET", a, "")
		}},
		{"scaling is a change like others", func(t *testing.T, s *script) {
			r := s.send("POST", fleets, three)
			s.watch(fleets+"?watch=true&resourceVersion="+r.version(), 1, 0, func() { s.send("PATCH", a, `{"spec":{"replicas":5}}`) })
		}},
		{"kinds without scale", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", `"spec":{"replicas":1}`))
			s.call("GET", widgets+"/a/scale", "")
			s.note(s.send("GET", "/api/v1/namespaces/{ns}/configmaps/a/scale", "").code)
		}},
		{"scale in discovery", func(t *testing.T, s *script) {
			r := s.send("GET", "/apis/conformance.gopf.dev/v1", "")
			for _, item := range toList(r.get("resources")) {
				if res := item.(map[string]any); strings.HasPrefix(fmt.Sprint(res["name"]), "fleets") {
					delete(res, "verbs")
					s.note(s.stable(res))
				}
			}
		}},
		{"scale of deployments", func(t *testing.T, s *script) {
			scaleBuiltin(s, "/apis/apps/v1/namespaces/{ns}/deployments", `{"matchLabels":{"a":"b"}}`)
		}},
		{"scale of stateful sets", func(t *testing.T, s *script) {
			scaleBuiltin(s, "/apis/apps/v1/namespaces/{ns}/statefulsets", `{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"DoesNotExist"}]}`)
		}},
		{"scale of replica sets", func(t *testing.T, s *script) {
			scaleBuiltin(s, "/apis/apps/v1/namespaces/{ns}/replicasets", `{"matchLabels":{"a":"b"}}`)
		}},
		{"scale of replication controllers", func(t *testing.T, s *script) {
			scaleBuiltin(s, "/api/v1/namespaces/{ns}/replicationcontrollers", `{"a":"b"}`)
		}},
	}
}

// scaleBuiltin scales an object of a well-known kind. It ignores fields that a running
// controller may set.
func scaleBuiltin(s *script, path, selector string) {
	s.send("POST", path, `{"metadata":{"name":"a"},"spec":{"replicas":0,"serviceName":"s","selector":`+selector+`,
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	fields := []string{"kind", "apiVersion", "metadata.name", "spec.replicas", "status.selector"}
	s.pick(fields, "GET", path+"/a/scale", "")
	s.pick(fields, "PATCH", path+"/a/scale", `{"spec":{"replicas":1}}`)
	s.pick([]string{"spec.replicas"}, "GET", path+"/a", "")
	s.pick(fields, "PUT", path+"/a/scale", scaleBody("a", "", 0))
	s.pick([]string{"spec.replicas"}, "GET", path+"/a", "")
	s.note(s.send("PATCH", path+"/a/scale", `{"spec":{"replicas":-1}}`).code)
}
