package gopftest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checks registers a validating webhook for examples.
func checks(t *testing.T, c *Cluster, client admissionregistrationv1.WebhookClientConfig, operations ...admissionregistrationv1.OperationType) {
	t.Helper()
	c.Define(t, Kind{Group: admissionregistrationv1.GroupName, Version: "v1", Plural: "validatingwebhookconfigurations"})
	timeout := int32(5)
	none := admissionregistrationv1.SideEffectClassNone
	c.Create(t, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "check"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "check.gopf.dev", ClientConfig: client, TimeoutSeconds: &timeout, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: operations,
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"kopf.dev"}, APIVersions: []string{"v1"}, Resources: []string{"*"}},
			}},
		}},
	})
}

// answering returns a webhook that responds with the result of a function.
func answering(respond func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = respond(review.Request)
		review.Response.UID = review.Request.UID
		_ = json.NewEncoder(w).Encode(review)
	})
}

func refusing(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no"}}
}

// denied reports whether err is a denial by the webhook.
func denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), `admission webhook "check.gopf.dev" denied the request: no`)
}

func TestWebhooksOfServicesAreCalledInProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		path := "/path"
		c.ServeWebhooks("hooks.system.svc", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				t.Errorf("called at %s", r.URL)
			}
			answering(refusing).ServeHTTP(w, r)
		}))
		checks(t, c, admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "hooks", Path: &path}}, "CREATE")
		_, err := client(t, c).Create(t.Context(), example("a"), metav1.CreateOptions{})
		if !denied(err) {
			t.Errorf("not denied: %v", err)
		}
	})
}

func TestWebhooksThatTakeTooLongFail(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.ServeWebhooks("slow.test", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		url := "https://slow.test/"
		checks(t, c, admissionregistrationv1.WebhookClientConfig{URL: &url}, "CREATE")
		began := time.Now()
		_, err := client(t, c).Create(t.Context(), example("a"), metav1.CreateOptions{})
		if !apierrors.IsInternalError(err) || time.Since(began) != 5*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestWebhooksMayUseTheAPI(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		url := "https://hooks.test/"
		c.ServeWebhooks("hooks.test", answering(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if n := len(c.List(t, examples, "default")); r.Operation == admissionv1.Create && n >= 1 {
				return refusing(r)
			}
			return &admissionv1.AdmissionResponse{Allowed: true}
		}))
		checks(t, c, admissionregistrationv1.WebhookClientConfig{URL: &url}, "*")
		if _, err := client(t, c).Create(t.Context(), example("a"), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client(t, c).Create(t.Context(), example("b"), metav1.CreateOptions{}); !denied(err) {
			t.Errorf("the second one was not denied: %v", err)
		}
	})
}

func TestChangesDuringAReviewAreNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		url, reviews := "https://hooks.test/", 0
		c.ServeWebhooks("hooks.test", answering(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if reviews++; reviews == 1 {
				c.PatchStatus(t, examples, "default", "a", `{"status":{"meanwhile":true}}`)
			}
			return &admissionv1.AdmissionResponse{Allowed: true}
		}))
		checks(t, c, admissionregistrationv1.WebhookClientConfig{URL: &url}, "UPDATE")
		after, err := mergePatch(t.Context(), client(t, c), "a", `{"spec":{"field":"new"}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(after.Object["spec"], after.Object["status"], reviews); got != "map[field:new] map[meanwhile:true] 2" {
			t.Errorf("got %s", got)
		}
	})
}

func TestWebhooksElsewhereAreCalledOverHTTPS(t *testing.T) {
	server := httptest.NewTLSServer(answering(refusing))
	t.Cleanup(server.Close)
	c := NewCluster(t, examples)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	checks(t, c, admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: ca}, "CREATE")
	if _, err := client(t, c).Create(t.Context(), example("a"), metav1.CreateOptions{}); !denied(err) {
		t.Errorf("not denied: %v", err)
	}
}

func TestWatchesGetEventsWhileWebhooksRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, examples)
		url := "https://hooks.test/"
		c.ServeWebhooks("hooks.test", answering(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			time.Sleep(time.Second)
			return &admissionv1.AdmissionResponse{Allowed: true}
		}))
		checks(t, c, admissionregistrationv1.WebhookClientConfig{URL: &url}, "CREATE")
		lines := follow(t, c, now(c))
		go func() { _, _ = client(t, c).Create(t.Context(), example("a"), metav1.CreateOptions{}) }()
		if got := drain(lines); len(got) != 0 {
			t.Errorf("sent before it was admitted: %v", got)
		}
		time.Sleep(2 * time.Second)
		if got := drain(lines); len(got) != 1 || got[0] != "ADDED a value" {
			t.Errorf("sent %v", got)
		}
	})
}
