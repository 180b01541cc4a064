package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/serve/spec"
	"gopf.dev/gopf/webhook"
)

// reviewing returns an operator with a review handler, and with one for creations.
func reviewing(t *testing.T, review string) (*set, *gopf.Operator) {
	t.Helper()
	files := fstest.MapFS{"operator.yaml": {Data: []byte("apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: things}\nresources:\n" +
		"  - resource: example.com/v1/things\n    handlers:\n      - " + review + "\n" +
		"      - {id: made, on: [create], cel: '{\"status\": {\"done\": true}}'}\n")}}
	parsed, problems := spec.Load(files, "operator.yaml")
	s, problems := build(parsed, problems, files, "operator.yaml", nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	op := gopf.New(gopf.Identity(parsed.Identity()))
	s.declare(op)
	return s, op
}

// reviewOf returns a review of a new thing.
func reviewOf(namespace, items string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":"a","namespace":%[1]q,
		"kind":{"group":"example.com","version":"v1","kind":"Thing"},"resource":{"group":"example.com","version":"v1","resource":"things"},"userInfo":{"username":"x"},
		"object":{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":%[1]q},"spec":{"items":[%[2]s]}}}}`, namespace, items)
}

func thingIn(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": namespace}, "spec": map[string]any{"items": []any{int64(1)}},
	}}
}

func isDone(o *unstructured.Unstructured) bool {
	is, _, _ := unstructured.NestedBool(o.Object, "status", "done")
	return is
}

// Any network peer can send reviews of objects in namespaces that it invents.
func TestClientsShareTheEvaluationsOfReviews(t *testing.T) {
	for name, handler := range map[string]string{
		"validate": `{id: a, validate: true, cel: 'object.metadata.name == "a"'}`,
		"mutate":   `{id: a, mutate: true, cel: '{"labels": {"done": "yes"}}'}`,
		"template": `{id: a, mutate: true, template: {labels: {done: "yes"}}}`,
		"where":    `{id: a, validate: true, where: {cel: 'object.metadata.name == "a"'}, exec: [echo, '{}']}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, op := reviewing(t, handler)
			synctest.Test(t, func(t *testing.T) {
				slots := queue.NewSlots(2)
				s.share.reviews = slots
				settle := func() {
					time.Sleep(5 * time.Second)
					synctest.Wait()
				}
				served := make(chan http.Handler, 1)
				op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, h http.Handler, announce func(webhook.ClientConfig)) error {
					served <- h
					announce(webhook.ClientConfig{URL: "https://hooks.test"})
					<-ctx.Done()
					return nil
				})
				cluster := gopftest.NewCluster(t, "example.com/v1/things")
				gopftest.Start(t, op, cluster)
				settle()
				reviews := <-served
				send := func(client, namespace string) *httptest.ResponseRecorder {
					w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", strings.NewReader(reviewOf(namespace, "")))
					r.RemoteAddr, w.Code = client+":1234", 0
					go reviews.ServeHTTP(w, r)
					return w
				}
				allowed := func(w *httptest.ResponseRecorder) bool { return strings.Contains(w.Body.String(), `"allowed":true`) }

				one, _ := slots.AcquireIn("10.0.0.1", "invented-1", nil, nil)
				peer, server := send("10.0.0.1", "invented-2"), send("10.0.0.2", "default")
				settle()
				if allowed(peer) {
					t.Error("the peer has more than its share")
				}
				if !allowed(server) {
					t.Errorf("the other client waits; it got %q", server.Body)
				}

				other, _ := slots.AcquireIn("10.0.0.3", "default", nil, nil) // all slots for reviews are taken
				cluster.CreateNamespace(t, "tenant")
				cluster.Create(t, thingIn("tenant"))
				settle()
				if !isDone(cluster.Get(t, "example.com/v1/things", "tenant", "a")) {
					t.Error("reviews delay other handlers")
				}

				one()
				other()
				settle()
				if !allowed(peer) {
					t.Errorf("a slot is lost; the peer got %q", peer.Body)
				}
			})
		})
	}
}

// The peer connects from another address than the API server of the test.
func TestForgedReviewsDelayNoHandlers(t *testing.T) {
	const expensive = "object.spec.items.all(a, object.spec.items.exists_one(b, a == b))"
	_, op := reviewing(t, "{id: unique, validate: true, cel: '"+expensive+"'}")
	started := make(chan string, 1)
	op.Settings.Admission.Managed = "things.example.com"
	op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
		server := webhook.Local{Addr: "127.0.0.1"}.Bind(webhook.Environment{Log: slog.New(slog.DiscardHandler)})
		return server.Serve(ctx, reviews, func(c webhook.ClientConfig) {
			announce(c)
			started <- c.URL
		})
	})
	cluster := gopftest.NewCluster(t, "example.com/v1/things")
	gopftest.Start(t, op, cluster)
	url := <-started

	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	if probe, err := dialer.Dial("tcp", strings.TrimPrefix(url, "https://")); err != nil {
		t.Skipf("this computer has only one loopback address: %v", err)
	} else {
		probe.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var items []string
	for i := range 2_000 {
		items = append(items, strconv.Itoa(i))
	}
	answered := make(chan struct{}, 1)
	for i := range 10 {
		peer := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		running.Go(func() {
			defer peer.CloseIdleConnections()
			for k := 0; ctx.Err() == nil; k++ {
				body := reviewOf(fmt.Sprintf("invented-%d-%d", i, k), strings.Join(items, ","))
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/unique", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				response, err := peer.Do(r)
				if err != nil {
					continue // the end of the test, or a closed connection
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	<-answered
	cluster.CreateNamespace(t, "tenant")
	began := time.Now()
	cluster.Create(t, thingIn("tenant"))
	cluster.Wait(t, "example.com/v1/things", "tenant", "a", isDone)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the object of the tenant was handled after %v", took)
	}
}

// Any user can create objects on which a condition fails, for example without a field.
func TestAConditionThatFailsInAReviewIsNoPanic(t *testing.T) {
	for name, where := range map[string]string{
		"fails":   `{cel: 'object.spec.field == "x"'}`,
		"holds":   `{cel: 'object.metadata.name == "a" && review.operation == "CREATE"'}`,
		"is else": `{cel: 'object.metadata.name == "b"'}`,
	} {
		_, op := reviewing(t, `{id: a, validate: true, where: `+where+`, cel: 'size(object.spec.items) > 0'}`)
		synctest.Test(t, func(t *testing.T) {
			served := make(chan http.Handler, 1)
			op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
				served <- reviews
				announce(webhook.ClientConfig{URL: "https://example.com"})
				<-ctx.Done()
				return nil
			})
			var lines bytes.Buffer
			stop := gopftest.Start(t, op, gopftest.NewCluster(t, "example.com/v1/things"), gopf.Log(slog.New(slog.NewTextHandler(&lines, nil))))
			time.Sleep(5 * time.Second)
			w := httptest.NewRecorder()
			(<-served).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", strings.NewReader(reviewOf("default", ""))))
			stop()
			body, log := w.Body.String(), lines.String()
			switch {
			case strings.Contains(log, "panic") || strings.Contains(log, "goroutine"):
				t.Errorf("%s: the log is\n%s", name, log)
			case name == "fails" && (!strings.Contains(body, "where.cel: expression") || !strings.Contains(body, `"allowed":false`) || !strings.Contains(log, "where.cel: expression")):
				t.Errorf("%s: got %s and the log\n%s", name, body, log)
			case name == "holds" && !strings.Contains(body, "the object violates a"):
				t.Errorf("%s: got %s", name, body)
			case name == "is else" && !strings.Contains(body, `"allowed":true`):
				t.Errorf("%s: got %s", name, body)
			}
		})
	}
}
