package gopftest

import (
	"fmt"
	"strings"
	"testing"
)

const strategic = "Content-Type: application/strategic-merge-patch+json"

func merging() []behaviour {
	const deployments = "/apis/apps/v1/namespaces/{ns}/deployments"
	deployment := `{"metadata":{"name":"a"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
		"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"x","value":"1"},{"name":"y","value":"2"}]},{"name":"d","image":"j"}]}}}}`
	images := func(s *script) {
		var all []string
		containers := s.send("GET", deployments+"/a", "").get("spec", "template", "spec", "containers")
		for _, item := range toList(containers) {
			c := item.(map[string]any)
			all = append(all, fmt.Sprint(c["name"], "=", c["image"], " ", s.stable(c["env"])))
		}
		s.note(strings.Join(all, ", "))
	}
	return []behaviour{
		{"strategic patches merge lists by their keys", func(t *testing.T, s *script) {
			s.send("POST", deployments, deployment)
			s.note(s.send("PATCH", deployments+"/a", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"k","env":[{"name":"y","value":"3"},{"name":"z","value":"4"}]}]}}}}`, strategic).code)
			images(s)
		}},
		{"strategic patches delete from lists", func(t *testing.T, s *script) {
			s.send("POST", deployments, deployment)
			s.note(s.send("PATCH", deployments+"/a", `{"spec":{"template":{"spec":{"containers":[{"name":"d","$patch":"delete"},{"name":"c","env":[{"name":"x","$patch":"delete"}]}]}}}}`, strategic).code)
			images(s)
		}},
		{"strategic patches replace lists", func(t *testing.T, s *script) {
			s.send("POST", deployments, deployment)
			s.note(s.send("PATCH", deployments+"/a", `{"spec":{"template":{"spec":{"containers":[{"$patch":"replace"},{"name":"e","image":"l"}]}}}}`, strategic).code)
			images(s)
		}},
		{"merge patches replace lists of well-known kinds", func(t *testing.T, s *script) {
			s.send("POST", deployments, deployment)
			s.note(s.send("PATCH", deployments+"/a", `{"spec":{"template":{"spec":{"containers":[{"name":"e","image":"l"}]}}}}`).code)
			images(s)
		}},
		{"strategic patches of maps", func(t *testing.T, s *script) {
			s.call("POST", configMaps, `{"metadata":{"name":"a","labels":{"x":"1"}},"data":{"a":"1","b":"2"}}`)
			s.call("PATCH", configMaps+"/a", `{"metadata":{"labels":{"y":"2"}},"data":{"a":null,"c":"3"}}`, strategic)
			s.call("PATCH", configMaps+"/a", `{"data":{"$patch":"replace","z":"1"}}`, strategic)
			s.note(s.send("PATCH", configMaps+"/a", `[]`, strategic).code, s.send("PATCH", configMaps+"/missing", `{}`, strategic).code)
		}},
		{"strategic patches of finalizers", func(t *testing.T, s *script) {
			s.send("POST", configMaps, `{"metadata":{"name":"a","finalizers":["a.dev/1","a.dev/2"]}}`)
			s.call("PATCH", configMaps+"/a", `{"metadata":{"finalizers":["a.dev/3"]}}`, strategic)
			s.call("PATCH", configMaps+"/a", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.dev/1"]}}`, strategic)
			s.send("PATCH", configMaps+"/a", `{"metadata":{"finalizers":null}}`)
		}},
		{"JSON patches move, copy and test", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", `"spec":{"a":{"b":1},"l":[1,2,3]}`))
			s.call("PATCH", widgets+"/a", `[{"op":"move","from":"/spec/a/b","path":"/spec/c"},{"op":"copy","from":"/spec/c","path":"/spec/d"}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"add","path":"/spec/l/1","value":9},{"op":"remove","path":"/spec/l/0"},{"op":"replace","path":"/spec/l/0","value":8}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"test","path":"/spec/missing","value":null}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"test","path":"/spec/c","value":1},{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`)
		}},
		{"a JSON patch is all or nothing", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.note(s.send("PATCH", widgets+"/a", `[{"op":"replace","path":"/spec/a","value":2},{"op":"test","path":"/spec/a","value":3}]`).code)
			s.call("GET", widgets+"/a", "")
		}},
		{"secrets take plain text", func(t *testing.T, s *script) {
			s.call("POST", secrets, `{"metadata":{"name":"a"},"stringData":{"k":"plain"},"data":{"l":"bA=="}}`)
			s.call("PATCH", secrets+"/a", `{"stringData":{"k":"other"}}`)
			s.note(s.send("POST", secrets, `{"metadata":{"name":"b"},"data":{"l":"not base64!"}}`).code)
		}},
		{"immutable config maps", func(t *testing.T, s *script) {
			s.call("POST", configMaps, `{"metadata":{"name":"a"},"data":{"k":"v"},"immutable":true}`)
			s.note(s.send("PATCH", configMaps+"/a", `{"metadata":{"labels":{"x":"y"}}}`).code)
		}},
	}
}

func following() []behaviour {
	return []behaviour{
		{"watch in all namespaces", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch("/apis/conformance.gopf.dev/v1/widgets?watch=true&labelSelector=run%3D{ns}&resourceVersion="+v, 2, 0, func() {
				s.send("POST", widgets, widget("a", `"labels":{"run":"{ns}"}`, ""))
				s.send("DELETE", widgets+"/a", "")
			})
		}},
		{"watch what goes with its namespace", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&resourceVersion="+v, 1, 0, func() { s.send("DELETE", "/api/v1/namespaces/{ns}", "") })
		}},
		{"watch a namespace", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", `"finalizers":["a.dev/f"]`, ""))
			v := s.send("GET", "/api/v1/namespaces", "").version()
			s.send("DELETE", "/api/v1/namespaces/{ns}", "")
			s.eventually("GET", widgets+"/a", func(r reply) bool { return r.get("metadata", "deletionTimestamp") != nil })
			s.send("PATCH", widgets+"/a", `{"metadata":{"finalizers":null}}`)
			s.eventually("GET", "/api/v1/namespaces/{ns}", func(r reply) bool { return r.code == 404 })
			var last map[string]any
			s.quietly(func() {
				for _, ev := range s.watch("/api/v1/namespaces?watch=true&timeoutSeconds=6&fieldSelector=metadata.name%3D{ns}&resourceVersion="+v, 99, 0, nil) {
					last = ev
				}
			})
			s.note(last["type"], reply{body: last}.get("object", "status", "phase"))
		}},
		{"watch from a version that is expired", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			s.expire()
			s.watch(widgets+"?watch=true&resourceVersion=1", 1, 0, nil)
		}},
		{"watch a dry run and a refusal", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&timeoutSeconds=5&resourceVersion="+v, 1, 0, func() {
				s.send("POST", widgets+"?dryRun=All", widget("dry", "", ""))
				s.send("POST", widgets, widget("Bad", "", ""))
				s.send("POST", widgets, widget("good", "", ""))
			})
		}},
		{"watch what is applied", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&resourceVersion="+v, 2, 0, func() {
				s.as("one", widgets+"/a?", widget("a", "", `"spec":{"a":1}`))
				s.as("one", widgets+"/a?", widget("a", "", `"spec":{"a":1}`))
				s.as("one", widgets+"/a?", widget("a", "", `"spec":{"a":2}`))
			})
		}},
		{"watch an object come back", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&resourceVersion="+v, 3, 0, func() {
				s.call("POST", widgets, widget("a", "", ""))
				s.call("DELETE", widgets+"/a", "")
				s.call("POST", widgets, widget("a", "", ""))
			})
		}},
		{"pages of bad tokens are refused", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			s.send("POST", widgets, widget("b", "", ""))
			token := fmt.Sprint(s.send("GET", widgets+"?limit=1", "").get("metadata", "continue"))
			s.note(s.send("GET", widgets+"?limit=1&continue="+token+"&resourceVersion=1", "").code)
			s.note(s.send("GET", widgets+"?limit=-1", "").code)
			s.note(s.send("GET", widgets+"?limit=x", "").code)
			s.note(s.send("GET", widgets+"?continue="+token, "").code)
		}},
		{"heads have no bodies", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			for _, path := range []string{"/a", "/missing", ""} {
				r := s.send("HEAD", widgets+path, "")
				s.note(path, r.code, r.text)
			}
		}},
	}
}

func belonging() []behaviour {
	owned := func(refs ...string) string { return `"ownerReferences":[` + strings.Join(refs, ",") + `]` }
	ref := func(kind, name, uid, more string) string {
		return `{"apiVersion":"conformance.gopf.dev/v1","kind":"` + kind + `","name":"` + name + `","uid":"` + uid + `"` + more + `}`
	}
	gone := func(r reply) bool { return r.code == 404 }
	return []behaviour{
		{"one of two owners goes", func(t *testing.T, s *script) {
			one, two := s.send("POST", widgets, widget("one", "", "")), s.send("POST", widgets, widget("two", "", ""))
			s.send("POST", widgets, widget("child", owned(ref("Widget", "one", one.uid(), ""), ref("Widget", "two", two.uid(), "")), ""))
			s.send("DELETE", widgets+"/one", "")
			r := s.eventually("GET", widgets+"/child", func(r reply) bool { return len(toList(r.get("metadata", "ownerReferences"))) == 1 })
			s.note(s.stable(r.get("metadata", "ownerReferences")))
			s.send("DELETE", widgets+"/two", "")
			s.eventually("GET", widgets+"/child", gone)
			s.note("gone")
		}},
		{"an owner of the whole cluster", func(t *testing.T, s *script) {
			owner := s.send("POST", gadgets, gadget("{ns}", ""))
			s.send("POST", widgets, widget("child", owned(ref("Gadget", s.namespace, owner.uid(), "")), ""))
			s.note(s.send("GET", widgets+"/child", "").code)
			s.send("DELETE", gadgets+"/{ns}", "")
			s.eventually("GET", widgets+"/child", gone)
			s.note("gone")
		}},
		{"dependents of dependents go, too", func(t *testing.T, s *script) {
			a := s.send("POST", widgets, widget("a", "", ""))
			b := s.send("POST", widgets, widget("b", owned(ref("Widget", "a", a.uid(), "")), ""))
			s.send("POST", configMaps, `{"metadata":{"name":"c",`+owned(ref("Widget", "b", b.uid(), ""))+`}}`)
			s.send("DELETE", widgets+"/a", "")
			s.eventually("GET", configMaps+"/c", gone)
			s.note(s.send("GET", widgets+"/b", "").code)
		}},
		{"a new owner of the same name is another", func(t *testing.T, s *script) {
			old := s.send("POST", widgets, widget("owner", "", ""))
			s.send("DELETE", widgets+"/owner", "")
			s.send("POST", widgets, widget("owner", "", ""))
			s.send("POST", widgets, widget("child", owned(ref("Widget", "owner", old.uid(), "")), ""))
			s.eventually("GET", widgets+"/child", gone)
			s.note("gone")
		}},
		{"dependents that do not block do not hold their owner", func(t *testing.T, s *script) {
			owner := s.send("POST", widgets, widget("owner", "", ""))
			s.send("POST", widgets, widget("child", `"finalizers":["a.dev/f"],`+owned(ref("Widget", "owner", owner.uid(), `,"blockOwnerDeletion":false`)), ""))
			s.send("DELETE", widgets+"/owner?propagationPolicy=Foreground", "")
			s.eventually("GET", widgets+"/owner", gone)
			s.eventually("GET", widgets+"/child", func(r reply) bool { return r.get("metadata", "deletionTimestamp") != nil })
			s.send("PATCH", widgets+"/child", `{"metadata":{"finalizers":null}}`)
			s.note("gone")
		}},
		{"an owner is set free by removing the reference", func(t *testing.T, s *script) {
			owner := s.send("POST", widgets, widget("owner", "", ""))
			s.send("POST", widgets, widget("child", owned(ref("Widget", "owner", owner.uid(), `,"controller":true`)), ""))
			s.call("PATCH", widgets+"/child", `{"metadata":{"ownerReferences":null}}`)
			s.send("DELETE", widgets+"/owner", "")
			s.eventually("GET", widgets+"/owner", gone)
			s.note(s.send("GET", widgets+"/child", "").code)
		}},
		{"a namespace with finalizers of its own", func(t *testing.T, s *script) {
			s.pick([]string{"metadata.finalizers"}, "PATCH", "/api/v1/namespaces/{ns}", `{"metadata":{"finalizers":["a.dev/f"]}}`)
			s.send("DELETE", "/api/v1/namespaces/{ns}", "")
			s.note(s.send("GET", "/api/v1/namespaces/{ns}", "").get("status", "phase"))
			s.eventually("GET", "/api/v1/namespaces/{ns}", func(r reply) bool { return len(toList(r.get("spec", "finalizers"))) == 0 })
			s.send("PATCH", "/api/v1/namespaces/{ns}", `{"metadata":{"finalizers":null}}`)
			s.eventually("GET", "/api/v1/namespaces/{ns}", gone)
			s.note("gone")
		}},
		{"a definition waits for the finalizers of its objects", func(t *testing.T, s *script) {
			path := "/apis/{ns}.gopf.dev/v1/namespaces/{ns}/things"
			s.send("POST", crds, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.{ns}.gopf.dev"},"spec":{
				"group":"{ns}.gopf.dev","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
				"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
			s.eventually("GET", path, func(r reply) bool { return r.code == 200 })
			s.send("POST", path, `{"apiVersion":"{ns}.gopf.dev/v1","kind":"Thing","metadata":{"name":"a","finalizers":["a.dev/f"]}}`)
			s.send("DELETE", crds+"/things.{ns}.gopf.dev", "")
			s.eventually("GET", path+"/a", func(r reply) bool { return r.get("metadata", "deletionTimestamp") != nil })
			s.note(s.send("GET", crds+"/things.{ns}.gopf.dev", "").get("metadata", "deletionTimestamp") != nil)
			s.call("POST", path, `{"apiVersion":"{ns}.gopf.dev/v1","kind":"Thing","metadata":{"name":"b"}}`)
			s.send("PATCH", path+"/a", `{"metadata":{"finalizers":null}}`)
			s.eventually("GET", crds+"/things.{ns}.gopf.dev", gone)
			s.note("gone")
		}},
	}
}
