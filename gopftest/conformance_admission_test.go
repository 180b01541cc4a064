package gopftest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// serveTLS serves webhooks for a real API server on this machine.
func serveTLS(t *testing.T, h http.Handler) (clientConfig string) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return `{"url":"` + server.URL + `/","caBundle":"` + base64.StdEncoding.EncodeToString(ca) + `"}`
}

// webhook responds to reviews as a test case requires, and records them.
type webhook struct {
	mu      sync.Mutex
	asked   []map[string]any
	probed  bool
	respond func(request reply) string // fields of the response; nil allows everything
	broken  bool
}

// ServeHTTP implements http.Handler.
func (w *webhook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var review map[string]any
	_ = json.NewDecoder(r.Body).Decode(&review)
	request := reply{body: review["request"].(map[string]any)}
	answer := `"allowed":true`
	switch {
	case request.get("resource", "resource") == "configmaps": // only detects whether the webhook is active
		w.probed = w.probed || request.get("name") == "probe"
	case w.broken:
		http.Error(rw, "broken", http.StatusInternalServerError)
		return
	default:
		w.asked = append(w.asked, request.body)
		if w.respond != nil {
			answer = w.respond(request)
		}
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,%s}}`, request.get("uid"), answer)
}

// register registers the webhook for the rule in the script's namespace, and waits until
// the API server calls it. rule may contain further fields after its end.
func (s *script) register(w *webhook, kind, name, rule string) {
	s.t.Helper()
	rule, more, _ := strings.Cut(rule, ";")
	path := "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "webhookconfigurations"
	body := `{"metadata":{"name":"` + name + `.{ns}"},"webhooks":[{"name":"` + name + `.gopf.dev","sideEffects":"None","admissionReviewVersions":["v1"],
		"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"{ns}"}},"clientConfig":` + s.serve(w) + `,
		"rules":[` + rule + `,{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]` + more + `}]}`
	if r := s.send("POST", path, body); r.code != 201 {
		s.t.Fatalf("register a webhook: %v", r)
	}
	s.t.Cleanup(func() { _, _ = s.try("DELETE", path+"/"+name+".{ns}", "") })
	for range 600 {
		_, _ = s.try("POST", "/api/v1/namespaces/{ns}/configmaps?dryRun=All", `{"metadata":{"name":"probe","labels":{"probe":"yes"}}}`)
		w.mu.Lock()
		probed := w.probed
		w.mu.Unlock()
		if probed {
			return
		}
		pause()
	}
	s.t.Fatal("the API server never called the webhook")
}

// tell records the reviews that the webhook received, without the parts that depend on
// the cluster.
func (s *script) tell(w *webhook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.asked {
		delete(request, "uid")
		delete(request, "userInfo")
		s.note("  asked", s.stable(request))
	}
	w.asked = nil
}

func about(resources, operations string) string {
	return `{"apiGroups":["conformance.gopf.dev"],"apiVersions":["v1"],"resources":[` + resources + `],"operations":[` + operations + `]}`
}

func jsonPatch(ops string) string {
	return `"allowed":true,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(ops)) + `"`
}

func reviewing() []behaviour {
	const validating, mutating = "Validating", "Mutating"
	always := func(answer string) func(reply) string { return func(reply) string { return answer } }
	return []behaviour{
		{"webhooks are asked about creations", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"widgets"`, `"CREATE"`))
			s.call("POST", widgets, widget("a", `"labels":{"x":"y"}`, `"spec":{"a":1},"status":{"s":1}`))
			s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
			s.tell(w)
		}},
		{"webhooks are asked about updates", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"widgets"`, `"UPDATE"`))
			r := s.send("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.call("PUT", widgets+"/a", widget("a", `"resourceVersion":"`+r.version()+`"`, `"spec":{"a":2}`))
			s.call("PATCH", widgets+"/a", `{"spec":{"a":3}}`)
			s.call("PATCH", widgets+"/a", `{"spec":{"a":3}}`)
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":1}}`)
			s.tell(w)
		}},
		{"webhooks are asked about the status", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"widgets/status"`, `"*"`))
			s.send("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
			s.call("PATCH", widgets+"/a/status", `{"status":{"s":1}}`)
			s.tell(w)
		}},
		{"webhooks are asked about deletions", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"widgets"`, `"DELETE"`))
			s.send("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.send("POST", widgets, widget("b", `"finalizers":["a.dev/f"]`, ""))
			s.call("DELETE", widgets+"/a", "")
			s.note(s.send("DELETE", widgets+"/b", "").code, s.send("PATCH", widgets+"/b", `{"metadata":{"finalizers":null}}`).code)
			s.note(s.send("DELETE", widgets+"/missing", "").code)
			s.tell(w)
		}},
		{"what webhooks refuse is not written", func(t *testing.T, s *script) {
			w := &webhook{respond: always(`"allowed":false,"status":{"message":"not like this"}`)}
			s.send("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.register(w, validating, "check", about(`"widgets"`, `"*"`))
			s.call("POST", widgets, widget("b", "", ""))
			s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
			s.call("DELETE", widgets+"/a", "")
			s.call("GET", widgets, "")
		}},
		{"webhooks tell why they refuse", func(t *testing.T, s *script) {
			answers := []string{
				`"allowed":false`, `"allowed":false,"status":{"reason":"Conflict"}`, `"allowed":false,"status":{"code":418,"message":"a teapot"}`,
				`"allowed":false,"status":{"code":200,"status":"Success","message":"odd"}`, `"allowed":false,"status":{"code":422,"reason":"Invalid","message":"bad","details":{"kind":"x"}}`,
			}
			w := &webhook{}
			w.respond = func(reply) string { return answers[len(w.asked)-1] }
			s.register(w, validating, "check", about(`"widgets"`, `"CREATE"`))
			for range answers {
				s.call("POST", widgets, widget("a", "", ""))
			}
		}},
		{"webhooks change what is created", func(t *testing.T, s *script) {
			w := &webhook{respond: always(jsonPatch(`[{"op":"add","path":"/metadata/labels","value":{"by":"webhook"}},{"op":"add","path":"/spec/added","value":1}]`))}
			s.register(w, mutating, "change", about(`"widgets"`, `"CREATE"`))
			s.call("POST", widgets, widget("a", "", `"spec":{"a":1},"status":{"s":1}`))
			s.call("GET", widgets+"/a", "")
			s.tell(w)
		}},
		{"webhooks change what is updated", func(t *testing.T, s *script) {
			w := &webhook{respond: always(jsonPatch(`[{"op":"add","path":"/spec/added","value":1}]`))}
			s.send("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.register(w, mutating, "change", about(`"widgets"`, `"UPDATE"`))
			s.call("PATCH", widgets+"/a", `{"spec":{"a":2}}`)
			s.call("PATCH", widgets+"/a", `{"metadata":{"labels":{"x":"y"}}}`)
			s.tell(w)
		}},
		{"schemas hold for what webhooks change", func(t *testing.T, s *script) {
			w := &webhook{respond: always(jsonPatch(`[{"op":"add","path":"/spec/count","value":-1},{"op":"add","path":"/spec/unknown","value":1}]`))}
			s.register(w, mutating, "change", about(`"orders"`, `"CREATE"`))
			s.call("POST", orders, order("a", "", `"item":"tea"`))
			s.tell(w)
		}},
		{"defaults are set before webhooks are asked", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, mutating, "change", about(`"orders"`, `"CREATE","UPDATE"`))
			s.call("POST", orders, order("a", "", `"item":"tea","unknown":1`))
			s.call("PATCH", orders+"/a", `{"spec":{"count":null}}`)
			s.tell(w)
		}},
		{"validation sees what mutation did", func(t *testing.T, s *script) {
			change := &webhook{respond: always(jsonPatch(`[{"op":"add","path":"/spec","value":{"changed":true}}]`))}
			s.register(change, mutating, "change", about(`"widgets"`, `"CREATE"`))
			check := &webhook{}
			s.register(check, validating, "check", about(`"widgets"`, `"CREATE"`))
			s.call("POST", widgets, widget("a", "", `"spec":{"a":1}`))
			s.tell(change)
			s.tell(check)
		}},
		{"webhooks change one after another", func(t *testing.T, s *script) {
			first := &webhook{respond: always(jsonPatch(`[{"op":"add","path":"/spec","value":{"by":["first"]}}]`))}
			second := &webhook{respond: always(jsonPatch(`[{"op":"add","path":"/spec/by/-","value":"second"}]`))}
			s.register(second, mutating, "b", about(`"widgets"`, `"CREATE"`))
			s.register(first, mutating, "a", about(`"widgets"`, `"CREATE"`))
			s.call("POST", widgets, widget("a", "", ""))
		}},
		{"broken webhooks refuse", func(t *testing.T, s *script) {
			w := &webhook{broken: true}
			s.register(w, validating, "check", about(`"widgets"`, `"CREATE"`))
			s.call("POST", widgets, widget("a", "", ""))
		}},
		{"broken webhooks can be ignored", func(t *testing.T, s *script) {
			w := &webhook{broken: true}
			s.register(w, validating, "check", about(`"widgets"`, `"CREATE"`)+`;,"failurePolicy":"Ignore"`)
			s.note(s.send("POST", widgets, widget("a", "", "")).code)
		}},
		{"webhooks choose by labels", func(t *testing.T, s *script) {
			w := &webhook{respond: always(`"allowed":false`)}
			s.register(w, validating, "check", about(`"widgets"`, `"*"`)+`;,"objectSelector":{"matchExpressions":[{"key":"probe","operator":"Exists"}]}`)
			s.note(s.send("POST", widgets, widget("a", "", "")).code, s.send("POST", widgets, widget("b", `"labels":{"probe":"x"}`, "")).code)
			s.note(s.send("PATCH", widgets+"/a", `{"metadata":{"labels":{"probe":"x"}}}`).code, s.send("DELETE", widgets+"/a", "").code)
		}},
		{"webhooks warn", func(t *testing.T, s *script) {
			w := &webhook{respond: always(`"allowed":true,"warnings":["careful","very careful"]`)}
			s.register(w, validating, "check", about(`"widgets"`, `"CREATE"`))
			r := s.send("POST", widgets, widget("a", "", ""))
			s.note(r.code, strings.Join(r.head.Values("Warning"), " | "))
		}},
		{"webhooks know dry runs and what is generated", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"widgets"`, `"*"`))
			s.send("POST", widgets+"?dryRun=All&fieldManager=me", widget("a", "", ""))
			s.send("POST", widgets, widget("a", "", ""))
			s.send("DELETE", widgets+"/a?dryRun=All", "")
			s.tell(w)
		}},
		{"applying is creating and updating for webhooks", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"widgets"`, `"*"`))
			s.as("one", widgets+"/a?", widget("a", "", `"spec":{"a":1}`))
			s.as("one", widgets+"/a?", widget("a", "", `"spec":{"a":2}`))
			s.tell(w)
		}},
		{"webhooks get the version that they want", func(t *testing.T, s *script) {
			w := &webhook{}
			s.register(w, validating, "check", about(`"orders"`, `"CREATE"`))
			s.note(s.send("POST", "/apis/conformance.gopf.dev/v1beta1/namespaces/{ns}/orders",
				strings.Replace(order("a", "", `"item":"tea"`), "dev/v1", "dev/v1beta1", 1)).code)
			s.tell(w)
		}},
	}
}
