package gopftest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

const (
	pods       = "/api/v1/namespaces/{ns}/pods"
	secrets    = "/api/v1/namespaces/{ns}/secrets"
	configMaps = "/api/v1/namespaces/{ns}/configmaps"
	events     = "/api/v1/namespaces/{ns}/events"
)

// chosen records which objects a field selector selects.
func (s *script) chosen(path string, selectors ...string) {
	s.t.Helper()
	for _, sel := range selectors {
		r := s.send("GET", path+"?fieldSelector="+url.QueryEscape(s.in(sel)), "")
		var names []string
		for _, item := range toList(r.get("items")) {
			names = append(names, fmt.Sprint(reply{body: item.(map[string]any)}.get("metadata", "name")))
		}
		s.note(sel, r.code, strings.Join(names, " "), fmt.Sprint(r.get("message")))
	}
}

func order(name, metadata, spec string) string {
	return strings.Replace(widget(name, metadata, `"spec":{`+spec+`}`), "Widget", "Order", 1)
}

func choosing() []behaviour {
	pod := func(name, node, restart string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"nodeName":"` + node + `","restartPolicy":"` + restart + `","automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`
	}
	return []behaviour{
		{"pods by fields", func(t *testing.T, s *script) {
			s.send("POST", pods, pod("a", "", "Always"))
			s.send("POST", pods, pod("b", "", "Never"))
			s.send("PATCH", pods+"/b/status", `{"status":{"phase":"Succeeded"}}`)
			s.chosen(pods, "spec.nodeName=", "spec.nodeName!=", "spec.nodeName=n", "spec.restartPolicy=Never", "spec.restartPolicy!=Never",
				"status.phase=Pending", "status.phase!=Pending,metadata.name=b", "spec.containers=c")
		}},
		{"secrets by type", func(t *testing.T, s *script) {
			s.send("POST", secrets, `{"metadata":{"name":"a"},"type":"Opaque"}`)
			s.send("POST", secrets, `{"metadata":{"name":"b"},"type":"gopf.dev/key"}`)
			s.chosen(secrets, "type=Opaque", "type=gopf.dev/key", "type!=Opaque", "data=x")
		}},
		{"config maps by fields", func(t *testing.T, s *script) {
			s.send("POST", configMaps, `{"metadata":{"name":"a"}}`)
			s.send("POST", configMaps, `{"metadata":{"name":"b"}}`)
			s.chosen(configMaps, "metadata.name=a", "metadata.name!=a,metadata.name!=kube-root-ca.crt", "data.x=1", "metadata.labels=x")
		}},
		{"events by what they are about", func(t *testing.T, s *script) {
			for name, reason := range map[string]string{"a": "Tested", "b": "Failed"} {
				s.send("POST", events, `{"metadata":{"name":"`+name+`"},"involvedObject":{"kind":"Widget","namespace":"{ns}","name":"`+name+`","apiVersion":"conformance.gopf.dev/v1","uid":"u-`+name+`"},
					"reason":"`+reason+`","message":"m","type":"Normal","firstTimestamp":"2020-01-01T00:00:00Z","lastTimestamp":"2020-01-01T00:00:00Z"}`)
			}
			s.chosen(events, "involvedObject.name=a", "involvedObject.kind=Widget", "involvedObject.uid=u-b", "reason=Failed", "reason!=Failed", "type=Warning", "message=m")
		}},
		{"namespaces by phase", func(t *testing.T, s *script) {
			s.chosen("/api/v1/namespaces", "metadata.name={ns}", "metadata.name={ns},status.phase=Active", "metadata.name={ns},status.phase!=Active", "spec.finalizers=x")
		}},
		{"fields that a definition lets choose by", func(t *testing.T, s *script) {
			s.send("POST", orders, order("a", "", `"item":"tea"`))
			s.send("POST", orders, order("b", "", `"item":"milk"`))
			s.chosen(orders, "spec.item=tea", "spec.item=tea,metadata.name=b", "spec.item!=tea,metadata.name=b", "spec.item=", "spec.count=1", "status.phase=x")
			s.chosen("/apis/conformance.gopf.dev/v1beta1/namespaces/{ns}/orders", "metadata.name=a", "spec.item=tea")
		}},
		{"watch by a field", func(t *testing.T, s *script) {
			v := s.send("GET", orders, "").version()
			s.watch(orders+"?watch=true&fieldSelector=spec.item%3Dtea&resourceVersion="+v, 4, 0, func() {
				s.call("POST", orders, order("a", "", `"item":"milk"`))
				s.call("PATCH", orders+"/a", `{"spec":{"item":"tea"}}`)
				s.call("PATCH", orders+"/a", `{"spec":{"count":2}}`)
				s.call("PATCH", orders+"/a", `{"spec":{"item":"milk"}}`)
				s.call("DELETE", orders+"/a", "")
				s.call("POST", orders, order("b", "", `"item":"tea"`))
			})
		}},
		{"delete a collection by fields", func(t *testing.T, s *script) {
			s.send("POST", orders, order("a", "", `"item":"tea"`))
			s.send("POST", orders, order("b", "", `"item":"milk"`))
			s.note(len(toList(s.send("DELETE", orders+"?fieldSelector=spec.item%3Dtea", "").get("items"))))
			s.note(s.send("DELETE", orders+"?fieldSelector=what%3Dtea", "").code)
			s.call("GET", orders, "")
		}},
		{"labels and fields choose together", func(t *testing.T, s *script) {
			s.send("POST", orders, order("a", `"labels":{"x":"1"}`, `"item":"tea"`))
			s.send("POST", orders, order("b", `"labels":{"x":"2"}`, `"item":"tea"`))
			s.send("POST", orders, order("c", `"labels":{"x":"1"}`, `"item":"milk"`))
			r := s.send("GET", orders+"?fieldSelector=spec.item%3Dtea&labelSelector=x%3D1", "")
			s.note(len(toList(r.get("items"))))
			page := s.send("GET", orders+"?fieldSelector=spec.item%3Dtea&limit=1", "")
			s.note(len(toList(page.get("items"))), page.get("metadata", "remainingItemCount"))
			found := 1
			for token := page.get("metadata", "continue"); token != nil && token != ""; token = page.get("metadata", "continue") {
				page = s.send("GET", orders+"?fieldSelector=spec.item%3Dtea&limit=1&continue="+fmt.Sprint(token), "")
				found += len(toList(page.get("items")))
			}
			s.note(found)
		}},
	}
}
