package gopftest

import (
	"fmt"
	"strings"
	"testing"
)

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func discovering() []behaviour {
	find := func(list any, key, value string) map[string]any {
		items, _ := list.([]any)
		for _, item := range items {
			if m := item.(map[string]any); m[key] == value {
				return m
			}
		}
		return nil
	}
	return []behaviour{
		{"discovery of a group", func(t *testing.T, s *script) {
			s.call("GET", "/apis/conformance.gopf.dev", "")
			r := s.send("GET", "/apis/conformance.gopf.dev/v1", "")
			s.note(r.get("kind"), r.get("apiVersion"), r.get("groupVersion"))
			for _, name := range []string{"widgets", "widgets/status", "gadgets", "gadgets/status", "orders"} {
				res := find(r.get("resources"), "name", name)
				verbs := fmt.Sprint(len(fmt.Sprint(res["verbs"])))
				delete(res, "verbs") // their order differs from kind to kind
				s.note(s.stable(res), verbs)
			}
			beta := s.send("GET", "/apis/conformance.gopf.dev/v1beta1", "")
			s.note(len(beta.get("resources").([]any)))
		}},
		{"discovery of all groups", func(t *testing.T, s *script) {
			r := s.send("GET", "/apis", "")
			s.note(r.code, r.get("kind"), r.get("apiVersion"), s.stable(find(r.get("groups"), "name", "conformance.gopf.dev")))
			core := s.send("GET", "/api", "")
			s.note(core.code, core.get("kind"), core.get("versions"))
			v1 := s.send("GET", "/api/v1", "")
			s.note(s.stable(find(v1.get("resources"), "name", "namespaces")["namespaced"]), find(v1.get("resources"), "name", "configmaps")["kind"])
		}},
		{"aggregated discovery", func(t *testing.T, s *script) {
			const accept = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
			r := s.send("GET", "/apis", "", accept)
			s.note(r.code, r.get("kind"), r.get("apiVersion"))
			for _, item := range r.get("items").([]any) {
				g := reply{body: item.(map[string]any)}
				if g.get("metadata", "name") != "conformance.gopf.dev" {
					continue
				}
				for _, version := range g.get("versions").([]any) {
					v := reply{body: version.(map[string]any)}
					s.note(v.get("version"), v.get("freshness"))
					for _, name := range []string{"widgets", "gadgets", "orders"} {
						res := find(v.get("resources"), "resource", name)
						delete(res, "verbs")
						for _, sub := range append([]any{}, toList(res["subresources"])...) {
							delete(sub.(map[string]any), "verbs")
						}
						s.note(s.stable(res))
					}
				}
			}
			core := s.send("GET", "/api", "", accept)
			s.note(core.code, core.get("kind"), len(core.get("items").([]any)))
		}},
		{"paths that are not served", func(t *testing.T, s *script) {
			for _, path := range []string{
				"/apis/missing.gopf.dev", "/apis/missing.gopf.dev/v1", "/apis/missing.gopf.dev/v1/things", "/apis/conformance.gopf.dev/v9",
				"/apis/conformance.gopf.dev/v9/widgets", "/apis/conformance.gopf.dev/v1/things", "/apis/conformance.gopf.dev/v1/namespaces/{ns}/things/x",
				"/apis/conformance.gopf.dev/v1beta1/widgets",
			} {
				r := s.send("GET", path, "")
				s.note(path, r.code, strings.TrimSpace(r.text))
			}
			s.note(s.send("GET", "/apis/conformance.gopf.dev/v1/widgets/a", "").code)
			s.note(s.send("POST", "/apis/conformance.gopf.dev/v1/widgets", widget("a", `"namespace":"{ns}"`, "")).code)
			s.call("PUT", widgets, widget("a", "", ""))
			s.call("PATCH", widgets, "{}")
			s.call("POST", widgets+"/a", widget("a", "", ""))
			s.note(s.send("OPTIONS", widgets, "").code)
		}},
		{"health and version", func(t *testing.T, s *script) {
			s.note(s.send("GET", "/healthz", "").text, s.send("GET", "/readyz", "").text, s.send("GET", "/livez", "").text)
			s.note(s.send("GET", "/version", "").get("major"))
		}},
	}
}

func toList(v any) []any { list, _ := v.([]any); return list }

func defining() []behaviour {
	crd := func(plural, kind, more string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + plural + `.{ns}.gopf.dev"},"spec":{
			"group":"{ns}.gopf.dev","scope":"Namespaced","names":{"plural":"` + plural + `","kind":"` + kind + `"},
			"versions":[{"name":"v1","served":true,"storage":true` + more + `,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
	}
	established := func(r reply) bool {
		return strings.Contains(fmt.Sprint(r.get("status", "conditions")), "type:Established")
	}
	return []behaviour{
		{"a definition becomes a resource, and vanishes with it", func(t *testing.T, s *script) {
			path := "/apis/{ns}.gopf.dev/v1/namespaces/{ns}/things"
			s.note(s.send("GET", path, "").code)
			r := s.send("POST", crds, crd("things", "Thing", ""))
			s.note(r.code, r.get("spec", "names"), r.get("metadata", "generation"))
			r = s.eventually("GET", crds+"/things.{ns}.gopf.dev", established)
			s.note(r.get("status", "acceptedNames"), r.get("status", "storedVersions"))
			s.eventually("GET", path, func(r reply) bool { return r.code == 200 })
			thing := `{"apiVersion":"{ns}.gopf.dev/v1","kind":"Thing","metadata":{"name":"a"},"status":{"kept":true}}`
			s.call("POST", path, thing)
			s.note(s.send("GET", "/apis/{ns}.gopf.dev/v1", "").code)
			s.note(s.send("DELETE", crds+"/things.{ns}.gopf.dev", "").code)
			s.eventually("GET", path, func(r reply) bool { return r.code == 404 })
			s.eventually("GET", crds+"/things.{ns}.gopf.dev", func(r reply) bool { return r.code == 404 })
			s.eventually("GET", "/apis/{ns}.gopf.dev/v1", func(r reply) bool { return r.code == 404 })
			s.note("gone")
		}},
		{"a definition that changes", func(t *testing.T, s *script) {
			path := "/apis/{ns}.gopf.dev/v1/namespaces/{ns}/things"
			s.send("POST", crds, crd("things", "Thing", ""))
			s.eventually("GET", path, func(r reply) bool { return r.code == 200 })
			s.send("POST", path, `{"apiVersion":"{ns}.gopf.dev/v1","kind":"Thing","metadata":{"name":"a"}}`)
			s.send("PATCH", crds+"/things.{ns}.gopf.dev", `[{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}]`)
			s.eventually("GET", path+"/a/status", func(r reply) bool { return r.code == 200 })
			s.call("PATCH", path+"/a", `{"status":{"ignored":true}}`)
			s.call("PATCH", path+"/a/status", `{"status":{"written":true}}`)
			s.send("DELETE", crds+"/things.{ns}.gopf.dev", "")
			s.eventually("GET", crds+"/things.{ns}.gopf.dev", func(r reply) bool { return r.code == 404 })
		}},
		{"bad definitions are refused", func(t *testing.T, s *script) {
			s.note(s.send("POST", crds, strings.Replace(crd("things", "Thing", ""), `"name":"things.`, `"name":"other.`, 1)).code)
			s.note(s.send("POST", crds, strings.Replace(crd("things", "Thing", ""), `"storage":true`, `"storage":false`, 1)).code)
		}},
		{"versions of one kind", func(t *testing.T, s *script) {
			beta := "/apis/conformance.gopf.dev/v1beta1/namespaces/{ns}/orders"
			s.call("POST", orders, `{"apiVersion":"conformance.gopf.dev/v1","kind":"Order","metadata":{"name":"a"},"spec":{"item":"tea"}}`)
			s.call("GET", beta+"/a", "")
			s.call("PATCH", beta+"/a", `{"spec":{"count":2}}`)
			s.call("GET", orders+"/a", "")
			s.call("POST", beta, `{"apiVersion":"conformance.gopf.dev/v1beta1","kind":"Order","metadata":{"name":"b"},"spec":{"item":"milk"}}`)
			r := s.send("GET", beta, "")
			s.note(r.get("apiVersion"), r.get("kind"), len(toList(r.get("items"))))
			s.watch(orders+"?watch=true&timeoutSeconds=5", 2, 0, nil)
		}},
	}
}

func schemas() []behaviour {
	order := func(name, rest string) string {
		return `{"apiVersion":"conformance.gopf.dev/v1","kind":"Order","metadata":{"name":"` + name + `"},` + rest + `}`
	}
	return []behaviour{
		{"unknown fields are pruned and defaults set", func(t *testing.T, s *script) {
			s.call("POST", orders, order("a", `"spec":{"item":"tea","what":1,"notes":{"any":{"thing":1}}},"more":{}`))
			s.call("PATCH", orders+"/a", `{"spec":{"what":1,"count":null}}`)
			s.call("PATCH", orders+"/a", `{"spec":{"count":5}}`)
			s.call("PATCH", orders+"/a/status", `{"status":{"done":true,"what":1}}`)
			s.call("PATCH", orders+"/a/status", `{"status":{"what":{"a":1}}}`)
		}},
		{"schemas are enforced", func(t *testing.T, s *script) {
			s.call("POST", orders, order("a", `"spec":{}`))
			s.call("POST", orders, order("a", `"spec":{"item":"t"}`))
			s.call("POST", orders, order("a", `"spec":{"item":"tea","count":-1}`))
			s.call("POST", orders, order("a", `"spec":{"item":"tea","count":"many"}`))
			s.call("POST", orders, order("a", `"spec":{"item":"tea","color":"blue"}`))
			s.call("POST", orders, order("a", `"other":1`))
			s.call("POST", orders, order("a", `"spec":{"item":"tea"}`))
			s.call("PATCH", orders+"/a", `{"spec":{"item":null}}`)
			s.call("PATCH", orders+"/a", `{"spec":{"item":1}}`)
			s.call("PATCH", orders+"/a/status", `{"status":{"done":"yes"}}`)
		}},
	}
}

func wellKnown() []behaviour {
	const (
		deployments = "/apis/apps/v1/namespaces/{ns}/deployments"
		leases      = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
	)
	generation := []string{"metadata.generation"}
	return []behaviour{
		{"config maps", func(t *testing.T, s *script) {
			s.call("POST", configMaps, `{"metadata":{"name":"a"},"data":{"x":"1"}}`)
			s.call("PATCH", configMaps+"/a", `{"data":{"x":"2"}}`)
			s.call("PUT", configMaps+"/a", `{"metadata":{"name":"a"},"data":{"x":"3"}}`)
			s.call("PUT", configMaps+"/a", `{"metadata":{"name":"a","resourceVersion":"1"},"data":{"x":"4"}}`)
			s.note(s.send("POST", configMaps, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"b"}}`).code)
			s.note(s.send("POST", configMaps, `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"b"}}`).code)
			s.note(s.send("POST", configMaps, `{"metadata":{"name":"b"},"data":{"x":1}}`).code)
			s.call("POST", configMaps, `{"metadata":{"name":"b"},"unknown":{"x":1}}`)
			s.note(s.send("GET", configMaps+"/a/status", "").code)
			s.note(s.send("PUT", configMaps, "{}").code, s.send("POST", configMaps+"/a", "{}").code)
			s.call("DELETE", configMaps+"/a", "")
		}},
		{"leases", func(t *testing.T, s *script) {
			r := s.call("POST", leases, `{"metadata":{"name":"a"},"spec":{"holderIdentity":"me","leaseDurationSeconds":15}}`)
			s.note(s.send("PUT", leases+"/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"you"}}`).code)
			s.call("PUT", leases+"/a", `{"metadata":{"name":"a","resourceVersion":"`+r.version()+`"},"spec":{"holderIdentity":"you"}}`)
		}},
		{"kubernetes events", func(t *testing.T, s *script) {
			r := s.send("POST", events, `{"metadata":{"generateName":"e-"},"involvedObject":{"kind":"Widget","namespace":"{ns}","name":"a","apiVersion":"conformance.gopf.dev/v1"},"reason":"Tested","message":"m","type":"Normal","firstTimestamp":"2020-01-01T00:00:00Z"}`)
			s.note(r.code, r.get("reason"))
			list := s.send("GET", events+"?fieldSelector=involvedObject.name%3Da", "")
			s.note(len(toList(list.get("items"))))
		}},
		{"deployments count generations", func(t *testing.T, s *script) {
			spec := `"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`
			s.pick(generation, "POST", deployments, `{"metadata":{"name":"a"},`+spec+`}`)
			s.eventually("GET", deployments+"/a", func(r reply) bool { return true })
			before := s.send("GET", deployments+"/a", "").get("metadata", "generation").(float64)
			for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `{"spec":{"replicas":1}}`, `{"status":{"replicas":9}}`} {
				after := s.send("PATCH", deployments+"/a", patch).get("metadata", "generation").(float64)
				s.note(patch, after-before)
				before = after
			}
		}},
		{"pods", func(t *testing.T, s *script) {
			s.pick([]string{"status.phase"}, "POST", pods, `{"metadata":{"name":"a"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`)
			s.pick([]string{"status.phase"}, "PATCH", pods+"/a/status", `{"status":{"phase":"Running"},"metadata":{"labels":{"by":"status"}}}`)
			s.note(s.send("GET", pods+"/a", "").get("metadata", "labels"))
			s.note(len(toList(s.send("GET", pods+"?fieldSelector=status.phase%3DRunning", "").get("items"))))
			s.note(s.send("DELETE", pods+"/a", "").code)
			s.note(s.send("GET", pods+"/a", "").code)
		}},
	}
}
