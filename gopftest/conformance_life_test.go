package gopftest

import (
	"fmt"
	"strings"
	"testing"
)

func statusSubresource() []behaviour {
	return []behaviour{
		{"the status endpoint changes nothing but status", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"labels":{"x":"y"}`, `"spec":{"a":1}`))
			s.call("PATCH", widgets+"/a/status", `{"metadata":{"labels":{"x":"z"},"annotations":{"a":"b"},"finalizers":["a.dev/f"]},"spec":{"a":2},"other":1,"status":{"s":1}}`)
			s.call("GET", widgets+"/a/status", "")
			s.call("PATCH", widgets+"/a/status", `[{"op":"replace","path":"/status/s","value":2},{"op":"add","path":"/spec/b","value":2}]`)
			s.call("PATCH", widgets+"/a/status", `{"status":null}`)
		}},
		{"the status endpoint without a status removes it", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			r := s.call("PATCH", widgets+"/a/status", `{"status":{"s":1}}`)
			s.call("PUT", widgets+"/a/status", widget("a", `"resourceVersion":"`+r.version()+`"`, `"spec":{"x":1}`))
		}},
		{"status writes that change nothing keep the version", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":1}}`)
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":1}}`)
			s.call("PATCH", widgets+"/a/status", `{"metadata":{"labels":{"x":"y"}},"spec":{"a":1}}`)
		}},
		{"status endpoint errors", func(t *testing.T, s *script) {
			s.call("PATCH", widgets+"/missing/status", `{"status":{}}`)
			s.call("GET", widgets+"/missing/status", "")
			s.send("POST", widgets, widget("a", "", ""))
			s.call("PATCH", widgets+"/a/status", `{"metadata":{"name":"b"},"status":{}}`)
			s.call("PATCH", widgets+"/a/status", `{"metadata":{"uid":"x"},"status":{"s":1}}`)
			s.note(s.send("DELETE", widgets+"/a/status", "").code)
			s.note(s.send("POST", widgets+"/a/status", "{}").code)
			s.call("GET", widgets+"/a/what", "")
		}},
		{"status of a deleted object with finalizers", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", `"finalizers":["a.dev/f"]`, ""))
			s.send("DELETE", widgets+"/a", "")
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":1},"metadata":{"finalizers":null}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"finalizers":null}}`)
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":2}}`)
		}},
	}
}

func deleting() []behaviour {
	return []behaviour{
		{"delete at once", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			s.call("DELETE", widgets+"/a", "")
			s.call("DELETE", widgets+"/a", "")
			s.call("GET", widgets+"/a", "")
		}},
		{"delete with finalizers only marks", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"finalizers":["a.dev/1","a.dev/2"]`, `"spec":{"a":1}`))
			s.call("DELETE", widgets+"/a", "")
			s.call("DELETE", widgets+"/a", "")
			s.call("DELETE", widgets+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":30}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"finalizers":["a.dev/2"]}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"finalizers":["a.dev/2","a.dev/3"]}}`)
			s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"deletionTimestamp":null,"deletionGracePeriodSeconds":null}}`)
			s.call("PATCH", widgets+"/a", `{"spec":{"a":3},"metadata":{"finalizers":null}}`)
			s.call("GET", widgets+"/a", "")
			s.call("POST", widgets, widget("a", "", ""))
		}},
		{"removing finalizers by JSON patch and by update", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", `"finalizers":["a.dev/1"]`, ""))
			s.send("DELETE", widgets+"/a", "")
			s.call("PATCH", widgets+"/a", `[{"op":"test","path":"/metadata/finalizers/0","value":"a.dev/1"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
			s.call("PATCH", widgets+"/a", `[{"op":"remove","path":"/metadata/finalizers/0"}]`)
			s.send("POST", widgets, widget("b", `"finalizers":["a.dev/1"]`, ""))
			r := s.send("DELETE", widgets+"/b", "")
			s.call("PUT", widgets+"/b", widget("b", `"resourceVersion":"`+r.version()+`"`, ""))
			s.call("GET", widgets+"/b", "")
		}},
		{"an empty list of finalizers is none", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"finalizers":[]`, ""))
			s.call("PATCH", widgets+"/a", `{"metadata":{"finalizers":["a.dev/1"]}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"finalizers":[]}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"finalizers":["a.dev/1","a.dev/1"]}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"labels":{},"annotations":{}}}`)
		}},
		{"preconditions of delete", func(t *testing.T, s *script) {
			r := s.call("POST", widgets, widget("a", "", ""))
			s.call("DELETE", widgets+"/a", `{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`)
			s.call("DELETE", widgets+"/a", `{"preconditions":{"resourceVersion":"1"}}`)
			s.call("DELETE", widgets+"/a", `{"preconditions":{"uid":"`+r.uid()+`","resourceVersion":"`+r.version()+`"}}`)
		}},
		{"delete options", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", "", ""))
			s.call("DELETE", widgets+"/a", `{"propagationPolicy":"Sideways"}`)
			s.call("DELETE", widgets+"/a", `{"propagationPolicy":"Orphan","orphanDependents":true}`)
			s.note(s.send("DELETE", widgets+"/a", `{`).code)
			s.call("DELETE", widgets+"/a?propagationPolicy=Background", "")
			s.send("POST", widgets, widget("b", `"finalizers":["a.dev/hold"]`, ""))
			r := s.send("DELETE", widgets+"/b?propagationPolicy=Foreground", "")
			s.note(r.code, strings.Contains(fmt.Sprint(r.get("metadata", "finalizers")), "foregroundDeletion"))
		}},
		{"delete a collection", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", `"labels":{"x":"1"}`, ""))
			s.send("POST", widgets, widget("b", `"labels":{"x":"2"}`, ""))
			s.send("POST", widgets, widget("c", `"labels":{"x":"1"},"finalizers":["a.dev/f"]`, ""))
			r := s.send("DELETE", widgets+"?labelSelector=x%3D1", "")
			s.note(r.code, r.get("kind"), len(r.get("items").([]any)))
			s.call("GET", widgets, "")
		}},
		{"dependents are collected with their owner", func(t *testing.T, s *script) {
			owner := s.send("POST", widgets, widget("owner", "", ""))
			ref := `"ownerReferences":[{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","name":"owner","uid":"` + owner.uid() + `"}]`
			s.send("POST", widgets, widget("free", ref, ""))
			s.send("POST", widgets, widget("held", ref+`,"finalizers":["a.dev/f"]`, ""))
			s.send("DELETE", widgets+"/owner", "")
			s.eventually("GET", widgets+"/free", func(r reply) bool { return r.code == 404 })
			r := s.eventually("GET", widgets+"/held", func(r reply) bool { return r.get("metadata", "deletionTimestamp") != nil })
			s.note(r.get("metadata", "finalizers"))
		}},
		{"orphaned dependents stay", func(t *testing.T, s *script) {
			// The garbage collector learns of a new kind after a while. Until then, it knows no
			// dependents, and would collect them later.
			s.send("POST", widgets, widget("probe", `"ownerReferences":[{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","name":"missing","uid":"00000000-0000-0000-0000-000000000000"}]`, ""))
			s.eventually("GET", widgets+"/probe", func(r reply) bool { return r.code == 404 })
			owner := s.send("POST", widgets, widget("owner", "", ""))
			s.send("POST", widgets, widget("child", `"ownerReferences":[{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","name":"owner","uid":"`+owner.uid()+`"}]`, ""))
			s.send("DELETE", widgets+"/owner", `{"propagationPolicy":"Orphan"}`)
			s.eventually("GET", widgets+"/owner", func(r reply) bool { return r.code == 404 })
			r := s.send("GET", widgets+"/child", "")
			s.note(r.code, r.get("metadata", "ownerReferences"))
		}},
		{"in the foreground dependents go first", func(t *testing.T, s *script) {
			owner := s.send("POST", widgets, widget("owner", "", ""))
			s.send("POST", widgets, widget("child", `"finalizers":["a.dev/f"],"ownerReferences":[{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","name":"owner","blockOwnerDeletion":true,"uid":"`+owner.uid()+`"}]`, ""))
			s.send("DELETE", widgets+"/owner", `{"propagationPolicy":"Foreground"}`)
			s.eventually("GET", widgets+"/child", func(r reply) bool { return r.get("metadata", "deletionTimestamp") != nil })
			s.note(s.send("GET", widgets+"/owner", "").get("metadata", "finalizers"))
			s.send("PATCH", widgets+"/child", `{"metadata":{"finalizers":null}}`)
			s.eventually("GET", widgets+"/owner", func(r reply) bool { return r.code == 404 })
			s.note("gone")
		}},
		{"an object whose owner is not there is collected", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("child", `"ownerReferences":[{"apiVersion":"conformance.gopf.dev/v1","kind":"Widget","name":"owner","uid":"00000000-0000-0000-0000-000000000000"}]`, ""))
			s.eventually("GET", widgets+"/child", func(r reply) bool { return r.code == 404 })
			s.note("gone")
		}},
	}
}

func namespaces() []behaviour {
	const ns = "/api/v1/namespaces/"
	return []behaviour{
		{"namespaces have a phase and a label", func(t *testing.T, s *script) {
			s.pick([]string{"metadata.labels", "spec", "status", "metadata.generation"}, "GET", ns+"{ns}", "")
			s.call("GET", ns+"missing", "")
			s.note(s.send("GET", ns+"default", "").code, s.send("GET", ns+"kube-system", "").code)
		}},
		{"a namespace is emptied before it goes", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("free", "", ""))
			s.send("POST", widgets, widget("held", `"finalizers":["a.dev/f"]`, ""))
			r := s.send("DELETE", ns+"{ns}", "")
			s.note(r.code, r.get("kind"), r.get("status", "phase"), r.get("metadata", "deletionTimestamp") != nil)
			s.eventually("GET", widgets+"/free", func(r reply) bool { return r.code == 404 })
			s.eventually("GET", widgets+"/held", func(r reply) bool { return r.get("metadata", "deletionTimestamp") != nil })
			s.note(s.send("GET", ns+"{ns}", "").get("status", "phase"))
			s.call("POST", widgets, widget("late", "", ""))
			s.note(s.send("DELETE", ns+"{ns}", "").code)
			s.send("PATCH", widgets+"/held", `{"metadata":{"finalizers":null}}`)
			s.eventually("GET", ns+"{ns}", func(r reply) bool { return r.code == 404 })
			s.call("POST", widgets, widget("late", "", ""))
		}},
	}
}
