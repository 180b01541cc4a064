package gopftest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func listing() []behaviour {
	// Labels exclude objects of other runs from lists across namespaces.
	few := func(s *script, names ...string) {
		for i, name := range names {
			s.send("POST", widgets, widget(name, fmt.Sprintf(`"labels":{"run":"{ns}","n":"%d"}`, i), ""))
		}
	}
	names := func(r reply) string {
		var all []string
		items, _ := r.get("items").([]any)
		for _, item := range items {
			all = append(all, fmt.Sprint(reply{body: item.(map[string]any)}.get("metadata", "name")))
		}
		return strings.Join(all, " ")
	}
	return []behaviour{
		{"list", func(t *testing.T, s *script) {
			s.call("GET", widgets, "")
			few(s, "b", "a")
			r := s.call("GET", widgets, "")
			s.note(r.version() >= r.get("items").([]any)[0].(map[string]any)["metadata"].(map[string]any)["resourceVersion"].(string))
			s.note(names(s.send("GET", "/apis/conformance.gopf.dev/v1/widgets?labelSelector=run%3D{ns}", "")))
			s.call("GET", "/apis/conformance.gopf.dev/v1/namespaces/{ns}-missing/widgets", "")
		}},
		{"list by labels", func(t *testing.T, s *script) {
			few(s, "a", "b", "c")
			s.send("POST", widgets, widget("d", "", ""))
			for _, sel := range []string{"n=0", "n!=0", "n in (0,1)", "n notin (0,1)", "n", "!n", "n=0,run", "n=9", "n>0"} {
				s.note(sel, names(s.send("GET", widgets+"?labelSelector="+url.QueryEscape(sel), "")))
			}
			s.note(s.send("GET", widgets+"?labelSelector="+url.QueryEscape("a in"), "").code)
		}},
		{"list by fields", func(t *testing.T, s *script) {
			few(s, "a", "b")
			for _, sel := range []string{"metadata.name=a", "metadata.name!=a", "metadata.namespace={ns}", "metadata.namespace=default", "metadata.name=a,metadata.namespace={ns}", "metadata.name=b,metadata.name=a"} {
				s.note(sel, names(s.send("GET", widgets+"?fieldSelector="+url.QueryEscape(s.in(sel)), "")))
			}
			s.call("GET", widgets+"?fieldSelector="+url.QueryEscape("spec.a=1"), "")
			s.note(s.send("GET", widgets+"?fieldSelector=what", "").code)
			s.send("POST", orders, `{"apiVersion":"conformance.gopf.dev/v1","kind":"Order","metadata":{"name":"a"},"spec":{"item":"tea"}}`)
			s.send("POST", orders, `{"apiVersion":"conformance.gopf.dev/v1","kind":"Order","metadata":{"name":"b"},"spec":{"item":"milk"}}`)
			s.note(names(s.send("GET", orders+"?fieldSelector=spec.item%3Dtea", "")))
			s.note(names(s.send("GET", orders+"?fieldSelector=spec.item%21%3Dtea", "")))
		}},
		{"list in pages shows one moment", func(t *testing.T, s *script) {
			few(s, "a", "b", "c", "d", "e")
			first := s.send("GET", widgets+"?limit=2", "")
			s.note(names(first), first.get("metadata", "remainingItemCount"))
			s.send("DELETE", widgets+"/c", "")
			few(s, "aa", "f")
			next := s.send("GET", widgets+"?limit=2&continue="+fmt.Sprint(first.get("metadata", "continue")), "")
			s.note(names(next), next.get("metadata", "remainingItemCount"), next.version() == first.version())
			last := s.send("GET", widgets+"?limit=2&continue="+fmt.Sprint(next.get("metadata", "continue")), "")
			s.note(names(last), last.get("metadata", "remainingItemCount"), last.get("metadata", "continue"), last.version() == first.version())
			selected := s.send("GET", widgets+"?limit=1&labelSelector=run", "")
			s.note(names(selected), selected.get("metadata", "remainingItemCount"), selected.get("metadata", "continue") != nil)
			s.note(names(s.send("GET", widgets+"?limit=100", "")))
			s.note(s.send("GET", widgets+"?continue=what", "").code)
		}},
		{"list at versions", func(t *testing.T, s *script) {
			few(s, "a")
			one := s.send("GET", widgets, "").version()
			few(s, "b")
			caughtUp(s)
			for _, query := range []string{
				"resourceVersion=0", "resourceVersion=" + one, "resourceVersion=" + one + "&resourceVersionMatch=NotOlderThan",
				"resourceVersion=" + one + "&resourceVersionMatch=Exact", "resourceVersion=" + one + "&limit=10",
			} {
				r := s.send("GET", widgets+"?"+query, "")
				s.note(strings.ReplaceAll(query, one, "…"), r.code, names(r))
			}
			s.call("GET", widgets+"?resourceVersionMatch=Exact", "")
			s.call("GET", widgets+"?resourceVersion=0&resourceVersionMatch=Exact", "")
			s.call("GET", widgets+"?resourceVersion=1&resourceVersionMatch=Sometimes", "")
			s.call("GET", widgets+"?resourceVersion=x", "")
			s.call("GET", widgets+"?sendInitialEvents=true", "")
		}},
		{"list at a version in the future times out", func(t *testing.T, s *script) {
			s.call("GET", widgets+"?resourceVersion=99999999999", "")
		}},
		{"get at versions", func(t *testing.T, s *script) {
			few(s, "a")
			caughtUp(s)
			s.note(s.send("GET", widgets+"/a?resourceVersion=0", "").code)
			s.note(s.send("GET", widgets+"/a?resourceVersion=1", "").code)
		}},
	}
}

// caughtUp waits until the API server's cache contains all writes. Otherwise reads at
// version 0 or 1 may return any earlier state.
func caughtUp(s *script) {
	s.send("GET", widgets+"?resourceVersion="+s.send("GET", widgets, "").version(), "")
}

func watching() []behaviour {
	return []behaviour{
		{"watch tells every change", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=1&resourceVersion="+v, 6, 0, func() {
				s.call("POST", widgets, widget("a", `"finalizers":["a.dev/f"]`, `"spec":{"a":1}`))
				s.call("PATCH", widgets+"/a", `{"spec":{"a":1}}`)
				s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
				s.call("PATCH", widgets+"/a/status", `{"status":{"a":2}}`)
				s.call("DELETE", widgets+"/a", "")
				s.call("PATCH", widgets+"/a", `{"spec":{"a":3},"metadata":{"finalizers":null}}`)
				s.call("POST", widgets, widget("b", "", ""))
			})
		}},
		{"watch resumes from a version", func(t *testing.T, s *script) {
			a := s.send("POST", widgets, widget("a", "", ""))
			s.send("PATCH", widgets+"/a", `{"spec":{"a":1}}`)
			s.send("POST", widgets, widget("b", "", ""))
			s.watch(widgets+"?watch=true&resourceVersion="+a.version(), 2, 0, nil)
		}},
		{"watch without a version begins with what exists", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("b", "", ""))
			s.send("POST", widgets, widget("a", "", ""))
			caughtUp(s)
			for _, query := range []string{"", "&resourceVersion=0"} {
				s.watch(widgets+"?watch=true&timeoutSeconds=5"+query, 3, 2, func() { s.send("PATCH", widgets+"/a", `{"spec":{"a":"`+query+`"}}`) })
			}
		}},
		{"watch streams a list and marks its end", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("b", "", ""))
			s.send("POST", widgets, widget("a", "", ""))
			list := widgets + "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
			s.watch(list, 4, 3, func() { s.send("DELETE", widgets+"/b", "") })
			s.watch(list+"&resourceVersion=0&labelSelector=none", 1, 0, nil)
			s.watch(list, 2, 0, nil, "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
			s.watch(list+"&includeObject=None", 2, 0, nil, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
		}},
		{"watch that streams no list begins now", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion="+v, 1, 0, func() {
				s.send("POST", widgets, widget("b", "", ""))
			})
		}},
		{"bad watches are refused", func(t *testing.T, s *script) {
			s.watch(widgets+"?watch=true&resourceVersion=x", 1, 0, nil)
			s.watch(widgets+"?watch=true&sendInitialEvents=true", 1, 0, nil)
			s.watch(widgets+"?watch=true&resourceVersion=1&resourceVersionMatch=NotOlderThan", 1, 0, nil)
			s.watch(widgets+"?watch=true&fieldSelector=spec.a%3D1", 1, 0, nil)
		}},
		{"watch by labels", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&labelSelector=x%3Dy&resourceVersion="+v, 5, 0, func() {
				s.call("POST", widgets, widget("a", "", `"spec":{"a":1}`))
				s.call("PATCH", widgets+"/a", `{"metadata":{"labels":{"x":"y"}}}`)
				s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
				s.call("PATCH", widgets+"/a", `{"spec":{"a":3},"metadata":{"labels":{"x":"z"}}}`)
				s.call("PATCH", widgets+"/a", `{"spec":{"a":4}}`)
				s.call("DELETE", widgets+"/a", "")
				s.call("POST", widgets, widget("b", `"labels":{"x":"y"}`, ""))
				s.call("DELETE", widgets+"/b", "")
			})
		}},
		{"watch one object", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			do := func() {
				s.send("POST", widgets, widget("a", "", ""))
				s.send("POST", widgets, widget("b", "", ""))
				s.send("DELETE", widgets+"/a", "")
				s.send("DELETE", widgets+"/b", "")
			}
			s.watch(widgets+"?watch=true&fieldSelector=metadata.name%3Db&resourceVersion="+v, 2, 0, do)
			s.watch(widgets+"/b?watch=true&resourceVersion="+v, 2, 0, nil)
		}},
		{"watch ends after its time", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&timeoutSeconds=1&resourceVersion="+v, 1, 0, nil)
		}},
		{"watch from the future waits for it", func(t *testing.T, s *script) {
			s.watch(widgets+"?watch=true&timeoutSeconds=1&resourceVersion=99999999999", 1, 0, func() { s.send("POST", widgets, widget("a", "", "")) })
		}},
		{"bookmarks come before the end", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			v := s.send("GET", widgets, "").version()
			events := s.watch(widgets+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion="+v, 1, 0, nil)
			s.note(len(events))
		}},
	}
}

func forms() []behaviour {
	const (
		table    = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
		partial  = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
		partials = "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	)
	return []behaviour{
		{"tables", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"labels":{"x":"y"}`, `"spec":{"a":1}`), table)
			s.call("GET", widgets+"/a", "", table)
			s.call("GET", widgets+"/a?includeObject=Object", "", table)
			s.call("GET", widgets, "", table)
			s.call("GET", widgets+"?includeObject=None", "", table)
			s.call("PATCH", widgets+"/a?includeObject=None", `{"spec":{"a":2}}`, table)
			s.call("PATCH", widgets+"/a/status?includeObject=None", `{"status":{"a":2}}`, table)
			s.call("PATCH", widgets+"/a?includeObject=Some", `{"spec":{"a":3}}`, table)
			s.call("GET", widgets+"/a", "")
			s.call("GET", widgets+"/missing", "", table)
			s.call("DELETE", widgets+"/a", "", table)
			s.call("GET", widgets, "", table+",application/json")
		}},
		{"tables with columns of the definition", func(t *testing.T, s *script) {
			s.call("POST", orders, `{"apiVersion":"conformance.gopf.dev/v1","kind":"Order","metadata":{"name":"a"},"spec":{"item":"tea"}}`, table)
			s.call("GET", orders+"?includeObject=None", "", table)
		}},
		{"tables in a watch tell columns once", func(t *testing.T, s *script) {
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&includeObject=None&resourceVersion="+v, 2, 0, func() {
				s.send("POST", widgets, widget("a", "", ""))
				s.send("POST", widgets, widget("b", "", ""))
			}, table)
		}},
		{"partial metadata", func(t *testing.T, s *script) {
			s.call("POST", widgets, widget("a", `"labels":{"x":"y"}`, `"spec":{"a":1}`), partial)
			s.call("GET", widgets+"/a", "", partial)
			s.call("PATCH", widgets+"/a", `{"metadata":{"labels":{"x":"z"}}}`, partial)
			s.call("GET", widgets, "", partials)
			s.note(s.send("GET", widgets, "", partial).code)
			s.call("GET", widgets, "", partial+",application/json")
			v := s.send("GET", widgets, "").version()
			s.watch(widgets+"?watch=true&resourceVersion="+v, 1, 0, func() { s.send("DELETE", widgets+"/a", "") }, partial)
		}},
		{"media types that are not served", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			for _, accept := range []string{
				"application/cbor", "application/vnd.kubernetes.protobuf", "text/plain", "application/json;as=Table;v=1;g=meta.k8s.io",
				"application/json;as=Other;v=v1;g=meta.k8s.io", "application/cbor, application/json", "*/*", "application/*", "",
			} {
				s.note(accept, s.send("GET", widgets+"/a", "", "Accept: "+accept).code)
			}
			s.note(s.send("PATCH", widgets+"/a", `{"spec":{"a":1}}`, "Accept: application/cbor").code, s.send("GET", widgets+"/a", "").get("spec"))
		}},
	}
}
