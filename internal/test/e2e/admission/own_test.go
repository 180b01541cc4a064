package admission_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/webhook"
)

const (
	prefix    = "kopf.zalando.org/"
	finalizer = "kopf.zalando.org/KopfFinalizerMarker"
	former    = "old.example.com/finalizer"
	foreign   = "example.com/foreign"
)

// refusing answers every review with a refusal, except those of probes.
func refusing(reviews http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "probe") {
			reviews.ServeHTTP(w, r)
			return
		}
		var in struct {
			Request struct{ UID string } `json:"request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in) // without a uid, the API server refuses as well
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(fields{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": fields{
			"uid": in.Request.UID, "allowed": false, "status": fields{"code": 403, "message": "reviewed"},
		}})
	})
}

// unconditional removes the match conditions from the managed configuration, as an
// old API server does that does not know them.
func (w *world) unconditional() {
	w.t.Helper()
	o, err := w.client(validating, "").Get(w.ctx(), w.managed, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	o.SetName("plain." + w.managed)
	o.SetResourceVersion("")
	o.SetUID("")
	hooks, _ := o.Object["webhooks"].([]any)
	for _, h := range hooks {
		delete(h.(fields), "matchConditions")
	}
	if _, err := w.client(validating, "").Create(w.ctx(), o, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.remove(validating, "", o.GetName()) })
}

// Neither the match conditions nor the webhook server block what the operator
// writes for itself, or the end of a deletion; and neither lets anything else pass.
func TestOwnWebhooksBlockNeitherRecordsNorDeletions(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"match conditions": true, "the server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			us := rest.CopyConfig(cluster)
			us.Impersonate = rest.ImpersonationConfig{UserName: "operator-" + w.group, Groups: []string{"system:masters"}}
			tenant := rest.CopyConfig(cluster)
			tenant.Impersonate = rest.ImpersonationConfig{UserName: "tenant-" + w.group, Groups: []string{"system:masters"}}

			var called atomic.Int32
			op := w.operator()
			op.Settings.Persistence.FormerFinalizers = []string{former}
			local := op.Settings.Admission.Server
			op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
				if alone {
					reviews = refusing(reviews) // only the match conditions can help
				}
				return local.Serve(ctx, reviews, announce)
			})
			u := w.try(us)
			marks := fields{"annotations": fields{"other": "1", prefix + "r": "1"}, "labels": fields{"l": "1"}, "finalizers": []any{foreign, finalizer}}
			for _, name := range []string{"live", "dying"} {
				w.must(u.create(name, fields{"metadata": marks, "spec": fields{"field": "value"}}))
				w.must(u.patch(name, fields{"status": fields{"kopf": fields{"progress": fields{}}, "phase": "ready"}}, "status"))
			}
			if err := u.delete("dying"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, name := range []string{"live", "dying"} {
					_, _ = w.try(cluster).patch(name, fields{"metadata": fields{"finalizers": nil}}) // so that the namespace can go
				}
			})
			gopf.For[*Thing](op, w.things()).Validate("never", func(context.Context, *review) error {
				called.Add(1)
				return gopf.Deny("reviewed")
			}, gopf.Subresource("*"), gopf.Operations(admissionv1.Update))
			o := w.start(op, gopf.Cluster(us))
			t.Cleanup(func() { o.Stop() })
			w.asked(true)
			kit.Eventually(t, func() error {
				_, err := w.try(tenant).dry("live", spec(fields{"field": "slipped"}))
				if err == nil {
					return errNotReviewed
				}
				return nil
			})
			if !alone {
				w.unconditional()
				kit.Eventually(t, func() error {
					before := called.Load()
					_, _ = u.dry("live", fields{"metadata": fields{"labels": fields{"l": "2"}}})
					if called.Load() != before+2 {
						return errNotReviewed
					}
					return nil
				})
			}
			for _, c := range writes() {
				t.Run(c.name, func(t *testing.T) {
					user := w.within(t).try(tenant)
					if c.us {
						user = w.within(t).try(us)
					}
					object := "live"
					if c.dying {
						object = "dying"
					}
					before := called.Load()
					_, err := user.dry(object, c.change, c.parts...)
					switch {
					case c.passes && err != nil:
						t.Error(err)
					case !c.passes:
						denied(t, err, 403, "reviewed")
					}
					if n := called.Load() - before; c.passes && n > 0 || !c.passes && !alone && n == 0 {
						t.Errorf("the handler was called %d times", n)
					}
				})
			}
		})
	}
}

// write is a change of an object, and whether it passes without a review.
type write struct {
	name   string
	us     bool // the operator's account sends it
	dying  bool // the object is being deleted
	change fields
	parts  []string // the subresource
	passes bool
}

func writes() []write {
	meta := func(of fields) fields { return fields{"metadata": of} }
	record := fields{prefix + "r": "2", prefix + "new": "1"}
	owners := []any{fields{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "8e6c7d3a-0000-0000-0000-000000000000"}}
	released := []any{foreign}
	return []write{
		{"anyone removes a finalizer in a deletion", false, true, meta(fields{"finalizers": released}), nil, true},
		{"anyone removes all finalizers in a deletion", false, true, meta(fields{"finalizers": nil}), nil, true},
		{"a spec changes in a deletion", false, true, spec(fields{"field": "slipped"}), nil, false},
		{"a spec changes with a removed finalizer", false, true, fields{"metadata": fields{"finalizers": released}, "spec": fields{"field": "slipped"}}, nil, false},
		{"a new spec field comes with a removed finalizer", false, true, fields{"metadata": fields{"finalizers": released}, "spec": fields{"size": 7}}, nil, false},
		{"a spec is removed with a finalizer", false, true, fields{"metadata": fields{"finalizers": released}, "spec": nil}, nil, false},
		{"labels change with a removed finalizer", false, true, meta(fields{"finalizers": released, "labels": fields{"l": "2"}}), nil, false},
		{"owners change with a removed finalizer", false, true, meta(fields{"finalizers": released, "ownerReferences": owners}), nil, false},
		{"annotations change with a removed finalizer", false, true, meta(fields{"finalizers": released, "annotations": record}), nil, false},
		{"a finalizer is removed without a deletion", false, false, meta(fields{"finalizers": released}), nil, false},
		{"the operator writes records", true, false, meta(fields{"annotations": record}), nil, true},
		{"the operator removes a record", true, false, meta(fields{"annotations": fields{prefix + "r": nil}}), nil, true},
		{"the operator removes its finalizer and records", true, true, meta(fields{"finalizers": released, "annotations": record}), nil, true},
		{"the operator exchanges its finalizer and a former one", true, false, meta(fields{"finalizers": []any{former, foreign}}), nil, true},
		{"another account adds a former finalizer", false, false, meta(fields{"finalizers": []any{former, foreign, finalizer}}), nil, false},
		{"the operator removes its finalizer", true, false, meta(fields{"finalizers": released}), nil, true},
		{"the operator writes its key of the status", true, false, fields{"status": fields{"kopf": fields{"progress": fields{"a": fields{"retries": 1}}}}}, []string{"status"}, true},
		{"the operator writes another key of the status", true, false, fields{"status": fields{"phase": "slipped"}}, []string{"status"}, false},
		{"another account writes records", false, false, meta(fields{"annotations": record}), nil, false},
		{"another account writes records in a deletion", false, true, meta(fields{"annotations": record}), nil, false},
		{"another account writes the key of the status", false, false, fields{"status": fields{"kopf": nil}}, []string{"status"}, false},
		{"records come with a spec", true, false, fields{"metadata": fields{"annotations": record}, "spec": fields{"field": "slipped"}}, nil, false},
		{"records come with a spec in a deletion", true, true, fields{"metadata": fields{"annotations": record}, "spec": fields{"field": "slipped"}}, nil, false},
		{"records come with labels", true, false, meta(fields{"annotations": record, "labels": fields{"l": nil}}), nil, false},
		{"records come with owners", true, false, meta(fields{"annotations": record, "ownerReferences": owners}), nil, false},
		{"records come with another annotation", true, false, meta(fields{"annotations": fields{prefix + "r": "2", "other": "2"}}), nil, false},
		{"records come with another finalizer", true, false, meta(fields{"annotations": record, "finalizers": []any{finalizer}}), nil, false},
	}
}

type notReviewedError struct{}

func (notReviewedError) Error() string { return "it is not reviewed yet" }

var errNotReviewed = notReviewedError{}

// dry changes a thing, or a part of it, without storing it.
func (u *user) dry(name string, change fields, subresources ...string) (any, error) {
	raw, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return u.things.Patch(u.ctx(), name, types.MergePatchType, raw, metav1.PatchOptions{DryRun: []string{dryRun}}, subresources...)
}
