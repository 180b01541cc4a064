package admission_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/webhook"
)

// account makes a service account that may do nothing, and returns the
// configuration of who is it.
func (w *world) account() *rest.Config {
	w.t.Helper()
	w.make(accounts, w.namespace, "operator", fields{})
	return w.token("operator")
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]func(w *world, s *gopf.AdmissionSettings){
		"managed": func(w *world, s *gopf.AdmissionSettings) {
			s.Server = webhook.Service{Name: "operator", Namespace: w.namespace, Listen: webhook.Local{Addr: "127.0.0.1"}}
			s.Managed = w.managed
		},
		"for development": func(w *world, s *gopf.AdmissionSettings) { s.Dev = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			op := gopf.New()
			settings(w, &op.Settings.Admission)
			x := gopf.For[*Thing](op, w.things())
			x.Validate("check", func(context.Context, *review) error { return nil })
			x.Mutate("change", func(context.Context, *review) error { return nil })
			o := w.start(op, gopf.Cluster(w.account()))
			for plural, id := range map[string]string{"validatingwebhookconfigurations": "check", "mutatingwebhookconfigurations": "change"} {
				o.Log.WaitFor(t, "[WARNING ]", plural, `by=["`+id+`"]`, "the API server does not call the webhooks of this operator")
			}
			if op.Settings.Admission.Server != nil {
				o.Log.WaitFor(t, "Loading the certificates of the webhook server failed", "secrets", "forbidden")
			} else {
				o.Log.WaitFor(t, "The webhook configuration cannot be written", "forbidden")
			}
			o.Log.WaitFor(t, `apiGroups: ["admissionregistration.k8s.io"]`)
		})
	}
}

func TestReviewsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	op := w.operator()
	hooks := freePort(t)
	op.Settings.Admission.Server = webhook.Service{
		Name: "operator", Namespace: w.namespace, Port: hooks, Listen: webhook.Local{Addr: "127.0.0.1", Port: hooks},
	}
	w.service()
	op.Settings.Metrics.Address = fmt.Sprintf("127.0.0.1:%d", port)
	gopf.For[*Thing](op, w.things()).Validate("Check_It", func(_ context.Context, r *review) error {
		switch r.Object.Spec.Field {
		case "bad":
			return gopf.Deny("bad")
		case "panic":
			panic("oh")
		}
		return nil
	})
	w.run(op)
	u := w.try(cluster)
	for field, times := range map[string]int{"bad": 1, "panic": 2, "good": 3} {
		for range times {
			_, _ = u.create("a", spec(fields{"field": field}), dryRun) // most are refused
		}
	}
	insecure := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	insecure.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	resp, err := insecure.Post(fmt.Sprintf("https://127.0.0.1:%d/whatever", hooks), "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	resp, err = http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`gopf_webhook_reviews_total{handler="Check_It",outcome="allowed"} 3`,
		`gopf_webhook_reviews_total{handler="Check_It",outcome="denied"} 1`,
		`gopf_webhook_reviews_total{handler="Check_It",outcome="failed"} 2`,
		`gopf_webhook_review_duration_seconds_count{handler="Check_It"} 6`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	if t.Failed() || strings.Contains(string(text), "whatever") {
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "webhook_reviews") {
				t.Error(line)
			}
		}
	}
}
