package harness

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

// Reviews runs an operator with admission handlers while a database is created, changed
// and deleted. It has a cluster in memory of its own, because webhooks hold for a
// whole cluster. The test fails unless each of the handlers is called, and unless the
// responses are those that the page describes.
func Reviews(name string, handlers []string, declare func(*gopf.Operator)) Case {
	return Case{name, func(t *testing.T, _ *gopftest.Cluster, _ string) {
		synctest.Test(t, func(t *testing.T) {
			c := gopftest.NewCluster(t, kinds["Database"][0])
			op, log := gopf.New(), &lines{}
			declare(op)
			options := logs.Options{Format: logs.Full, Level: slog.LevelDebug}
			gopftest.Start(t, op, c, gopf.Log(slog.New(logs.New(log, options))))
			time.Sleep(time.Second) // until the cluster knows the webhooks
			u := newUser(t, c)
			u.requests(handlers)
			for _, id := range handlers {
				if id == "scale" {
					continue // clusters in memory call no webhooks for it: see Scale
				}
				if !strings.Contains(log.String(), "Webhook '"+id) {
					t.Errorf("the handler %s was not called:\n%s", id, log)
				}
			}
		})
	}}
}

// Scale calls a handler that reviews the scale subresource.
func Scale(name string, fn func(context.Context, *gopf.Review[gopf.Unstructured]) error) Case {
	return Case{name, func(t *testing.T, _ *gopftest.Cluster, _ string) {
		c := gopftest.NewCluster(t, kinds["Database"][0])
		for replicas, denied := range map[int64]string{5: "", 6: "6 replicas are too many"} {
			scaled := object("Database", "default")
			scaled.Object["spec"] = map[string]any{"replicas": replicas}
			review := gopftest.Review[gopf.Unstructured](t, c, scaled, gopftest.Requested(admissionv1.Update), gopftest.RequestedPart("scale"))
			if err := review.Run(fn); (err != nil) != (denied != "") || err != nil && err.Error() != denied {
				t.Errorf("%d replicas: got the error %v, want %q", replicas, err, denied)
			}
		}
	}}
}

// user sends requests and keeps the warnings in the responses.
type user struct {
	t         *testing.T
	databases dynamic.ResourceInterface
	warnings  []string
}

func newUser(t *testing.T, c *gopftest.Cluster) *user {
	t.Helper()
	u := &user{t: t}
	config := c.RESTConfig()
	config.WarningHandler = u
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	u.databases = client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}).Namespace("default")
	return u
}

// HandleWarningHeader implements rest.WarningHandler.
func (u *user) HandleWarningHeader(_ int, _, text string) { u.warnings = append(u.warnings, text) }

// patch changes fields of the spec, or of the status in its subresource.
func (u *user) patch(text string, subresource ...string) error {
	_, err := u.databases.Patch(context.Background(), "mine", types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresource...)
	return err
}

// requests sends requests to which handlers of the page respond differently.
func (u *user) requests(handlers []string) {
	u.t.Helper()
	object := object("Database", "default")
	object.SetLabels(map[string]string{"tier": "prod"})
	object.Object["spec"] = map[string]any{"size": int64(0), "replicas": int64(1)}
	made, err := u.databases.Create(context.Background(), object, metav1.CreateOptions{})
	u.response("a creation", err, "")
	owner, _, _ := unstructured.NestedString(made.Object, "spec", "owner")
	if (owner != "") != slices.Contains(handlers, "defaults") {
		u.t.Errorf("the owner is %q", owner)
	}
	u.response("a larger size", u.patch(`{"spec": {"size": 10}}`), "")
	u.response("a smaller size", u.patch(`{"spec": {"size": 1}}`), "a database cannot shrink from 10 to 1")
	u.response("a large size", u.patch(`{"spec": {"size": 1001}}`), "")
	if want := []string{"1001 is a lot"}; !slices.Equal(u.warnings, want) {
		u.t.Errorf("the warnings are %q, want %q", u.warnings, want)
	}
	u.response("a status", u.patch(`{"status": {"phase": "Ready"}}`, "status"), "")
	u.response("a deletion", u.databases.Delete(context.Background(), "mine", metav1.DeleteOptions{}), "")
}

// response fails the test unless the request was allowed, or denied with this message.
func (u *user) response(request string, err error, denied string) {
	u.t.Helper()
	if denied == "" && err != nil || denied != "" && !strings.Contains(errors.Join(err, errors.New("")).Error(), "denied the request: "+denied) {
		u.t.Errorf("%s: got the error %v, want %q", request, err, denied)
	}
}
