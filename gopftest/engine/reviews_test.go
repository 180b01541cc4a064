package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/webhook"
)

const (
	recordPrefix = "kopf.zalando.org/"
	ourFinalizer = "kopf.zalando.org/KopfFinalizerMarker"
	otherOne     = "example.com/foreign"
	formerOne    = "old.example.com/finalizer"
)

type fields = map[string]any

// hooked is a webhook server that the in-memory cluster calls without a network.
func hooked(c *gopftest.Cluster, asked *atomic.Int32) webhook.Server {
	return webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
		c.ServeWebhooks("hooks.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			reviews.ServeHTTP(w, r)
		}))
		announce(webhook.ClientConfig{URL: "https://hooks.test"})
		<-ctx.Done()
		return nil
	})
}

// user makes requests about examples as a given account.
func user(name string, config *rest.Config) func(t *testing.T, object string, change fields, parts ...string) error {
	if name != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	}
	examples := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"})
	return func(t *testing.T, object string, change fields, parts ...string) error {
		t.Helper()
		raw, err := json.Marshal(change)
		if err != nil {
			t.Fatal(err)
		}
		_, err = examples.Namespace("default").Patch(t.Context(), object, types.MergePatchType, raw, metav1.PatchOptions{DryRun: []string{"All"}}, parts...)
		return err
	}
}

// Without match conditions, only the webhook server decides.
func TestOwnWebhooksBlockNeitherRecordsNorDeletions(t *testing.T) {
	for name, conditional := range map[string]bool{"by match conditions": true, "by the server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t)
				c.Define(t, gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true, StatusSubresource: true})
				var asked atomic.Int32
				op := gopf.New()
				op.Settings.Persistence.FormerFinalizers = []string{formerOne}
				op.Settings.Admission.Server = hooked(c, &asked)
				configurations := "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
				c.Define(t, gopftest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "validatingwebhookconfigurations"})
				c.Define(t, gopftest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "mutatingwebhookconfigurations"})
				op.Settings.Admission.Managed = "hooks.kopf.dev"
				gopf.For[*Example](op, resource).Validate("never", func(context.Context, *gopf.Review[*Example]) error {
					return gopf.Deny("reviewed")
				}, gopf.Subresource("*"), gopf.Operations(admissionv1.Update))

				for _, name := range []string{"live", "dying", "former"} {
					o := example(name, "value")
					o.SetAnnotations(map[string]string{recordPrefix + "r": "1", "other": "1"})
					o.SetLabels(map[string]string{"l": "1"})
					o.SetFinalizers([]string{otherOne, ourFinalizer})
					o.Object["status"] = fields{"kopf": fields{"progress": fields{}}, "phase": "ready"}
					if name == "former" {
						o.SetFinalizers([]string{otherOne, formerOne})
					}
					if name == "dying" {
						now := metav1.Now()
						o.SetDeletionTimestamp(&now)
					}
					c.Seed(t, o)
				}
				c.Seed(t, wide("wide", 450))
				c.Seed(t, wide("wider", 4_000))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(testLog(t))) }()
				settle()
				hooks := c.Get(t, configurations, "", "hooks.kopf.dev")
				if n := len(conditionsOf(hooks)); n != 2 {
					t.Fatalf("%d match conditions in %v", n, hooks.Object)
				}
				if !conditional {
					plain := hooks.DeepCopy()
					plain.SetName("plain.kopf.dev")
					plain.SetResourceVersion("")
					plain.SetUID("")
					delete(plain.Object["webhooks"].([]any)[0].(fields), "matchConditions")
					c.Create(t, plain)
				}
				for _, w := range ownWrites() {
					who := user("tenant", c.RESTConfig())
					if w.us {
						who = user("", c.RESTConfig())
					}
					before := asked.Load()
					err := who(t, w.object, w.change, w.parts...)
					if passed := err == nil; passed != w.passes || !passed && !strings.Contains(err.Error(), "reviewed") {
						t.Errorf("%s: %v", w.name, err)
					}
					if called := asked.Load() > before; called == (w.passes && conditional && w.object != "wider") {
						t.Errorf("%s: the server was called: %t", w.name, called)
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// wide returns an object in deletion with many fields everywhere. The API server aborts
// expensive expressions, so these must not be evaluated at all.
func wide(name string, n int) *unstructured.Unstructured {
	o := example(name, "value")
	annotations, status := map[string]string{}, fields{}
	for i := range n {
		annotations[fmt.Sprint("a", i)] = ""
		status[fmt.Sprint("s", i)] = int64(1)
	}
	for i := range n / 5 {
		o.Object[fmt.Sprint("f", i)] = int64(1)
	}
	list := []string{otherOne, ourFinalizer}
	for i := range n / 10 {
		list = append(list, fmt.Sprint("example.com/", i))
	}
	o.SetAnnotations(annotations)
	o.SetFinalizers(list)
	o.Object["status"] = status
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	return o
}

func conditionsOf(configuration *unstructured.Unstructured) []any {
	hooks, _ := configuration.Object["webhooks"].([]any)
	if len(hooks) != 1 {
		return nil
	}
	conditions, _ := hooks[0].(fields)["matchConditions"].([]any)
	return conditions
}

// ownWrite is a write to an object, and whether it is allowed without a handler.
type ownWrite struct {
	name   string
	us     bool // sent by the operator's account
	object string
	change fields
	parts  []string // the subresource
	passes bool
}

func ownWrites() []ownWrite {
	meta := func(of fields) fields { return fields{"metadata": of} }
	record, released := fields{recordPrefix + "r": "2", recordPrefix + "new": "1"}, []any{otherOne}
	slipped := fields{"field": "slipped"}
	owners := []any{fields{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "o"}}
	return []ownWrite{
		{"anyone removes a finalizer in a deletion", false, "dying", meta(fields{"finalizers": released}), nil, true},
		{"anyone removes all finalizers in a deletion", false, "dying", meta(fields{"finalizers": nil}), nil, true},
		{"anyone removes a finalizer of a wide object", false, "wide", meta(fields{"finalizers": released}), nil, true},
		{"the operator writes records on a wide object", true, "wide", meta(fields{"annotations": record}), nil, true},
		{"anyone removes a finalizer of a too wide object", false, "wider", meta(fields{"finalizers": released}), nil, true},
		{"the operator writes records on a too wide object", true, "wider", meta(fields{"annotations": record}), nil, true},
		{"a spec changes in a deletion", false, "dying", fields{"spec": slipped}, nil, false},
		{"a spec changes with a removed finalizer", false, "dying", fields{"metadata": fields{"finalizers": released}, "spec": slipped}, nil, false},
		{"labels change with a removed finalizer", false, "dying", meta(fields{"finalizers": released, "labels": fields{"l": "2"}}), nil, false},
		{"owners change with a removed finalizer", false, "dying", meta(fields{"finalizers": released, "ownerReferences": owners}), nil, false},
		{"annotations change with a removed finalizer", false, "dying", meta(fields{"finalizers": released, "annotations": record}), nil, false},
		{"a finalizer is removed without a deletion", false, "live", meta(fields{"finalizers": released}), nil, false},
		{"the operator writes records", true, "live", meta(fields{"annotations": record}), nil, true},
		{"the operator removes its finalizer and records", true, "dying", meta(fields{"finalizers": released, "annotations": record}), nil, true},
		{"the operator removes its finalizer", true, "live", meta(fields{"finalizers": released}), nil, true},
		{"the operator replaces a former finalizer", true, "former", meta(fields{"finalizers": []any{otherOne, ourFinalizer}}), nil, true},
		{"the operator replaces another finalizer", true, "former", meta(fields{"finalizers": []any{ourFinalizer}}), nil, false},
		{"another account removes a former finalizer", false, "former", meta(fields{"finalizers": released}), nil, false},
		{"the operator writes its key of the status", true, "live", fields{"status": fields{"kopf": fields{"progress": fields{"a": fields{}}}}}, []string{"status"}, true},
		{"the operator writes another key of the status", true, "live", fields{"status": fields{"phase": "slipped"}}, []string{"status"}, false},
		{"another account writes records", false, "live", meta(fields{"annotations": record}), nil, false},
		{"another account writes the key of the status", false, "live", fields{"status": fields{"kopf": nil}}, []string{"status"}, false},
		{"records come with a spec", true, "live", fields{"metadata": fields{"annotations": record}, "spec": slipped}, nil, false},
		{"records come with a spec in a deletion", true, "dying", fields{"metadata": fields{"annotations": record}, "spec": slipped}, nil, false},
		{"records come with labels", true, "live", meta(fields{"annotations": record, "labels": fields{"l": nil}}), nil, false},
		{"records come with owners", true, "live", meta(fields{"annotations": record, "ownerReferences": owners}), nil, false},
		{"records come with another annotation", true, "live", meta(fields{"annotations": fields{recordPrefix + "r": "2", "other": "2"}}), nil, false},
		{"records come with another finalizer", true, "live", meta(fields{"annotations": record, "finalizers": []any{ourFinalizer}}), nil, false},
	}
}

func TestAReplicaThatStopsLeavesTheWebhooksToTheOthers(t *testing.T) {
	for name, elected := range map[string]bool{"in an election": true, "a single replica": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				c.Define(t, gopftest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "validatingwebhookconfigurations"})
				c.Define(t, gopftest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "mutatingwebhookconfigurations"})
				var asked atomic.Int32
				op := gopf.New()
				op.Settings.Election.Enabled = elected
				op.Settings.Admission.Server = hooked(c, &asked)
				op.Settings.Admission.Managed = "hooks.kopf.dev"
				gopf.For[*Example](op, resource).Validate("check", func(context.Context, *gopf.Review[*Example]) error { return nil })
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(testLog(t))) }()
				time.Sleep(10 * time.Second)
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				left := c.Get(t, "admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "", "hooks.kopf.dev")
				if hooks, _ := left.Object["webhooks"].([]any); (len(hooks) == 1) != elected {
					t.Errorf("%d webhooks are left", len(hooks))
				}
			})
		})
	}
}
