package admission_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// paths are those of what a review changes.
func paths(r *review) string {
	var all []string
	for _, item := range r.Diff {
		if len(item.Path) == 0 || item.Path[0] != "metadata" { // versions and managed fields differ
			all = append(all, string(item.Op)+":"+strings.Join(item.Path, "."))
		}
	}
	return strings.Join(all, ",")
}

func TestHandlersSeeTheWholeRequest(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("look", func(_ context.Context, r *review) error {
		d.Add("%s %s/%s %s->%s by %s dry=%t sub=%q diff=%s old=%q kind=%s", r.Operation, r.Object.Namespace, r.Object.Name,
			r.Old.Spec.Field, r.Object.Spec.Field, r.User.Username, r.DryRun, r.Subresource, paths(r), r.Old.UID, r.Resource.Kind)
		if !strings.HasPrefix(r.Header.Get("User-Agent"), "kube-apiserver") || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the headers are %v", r.Header)
		}
		if r.ClientCertificate != nil {
			t.Errorf("a client certificate: %v", r.ClientCertificate.Subject)
		}
		if _, there := r.Raw()["spec"]; !there {
			t.Errorf("raw: %v", r.Raw())
		}
		return nil
	})
	w.run(op)
	alice := rest.CopyConfig(cluster)
	alice.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:masters"}}
	u := w.try(alice)
	w.must(u.create("a", spec(fields{"field": "x"}), dryRun))
	d.CheckNew(t, `CREATE `+w.namespace+`/a ->x by alice dry=true sub="" diff=add: old="" kind=Thing`)
	uid := string(w.must(u.create("a", spec(fields{"field": "x"}))).GetUID())
	if got := d.Take(); len(got) != 1 || !strings.Contains(got[0], "dry=false") {
		t.Errorf("noted: %q", got)
	}
	w.must(u.patch("a", spec(fields{"field": "y", "size": 3})))
	d.CheckNew(t, `UPDATE `+w.namespace+`/a x->y by alice dry=false sub="" diff=add:spec.size,change:spec.field old="`+uid+`" kind=Thing`)
	if err := u.delete("a"); err != nil {
		t.Fatal(err)
	}
	d.CheckNew(t, `DELETE `+w.namespace+`/a y->y by alice dry=false sub="" diff=remove: old="`+uid+`" kind=Thing`)
}

func TestOperationsAreChosen(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	note := func(id string) func(context.Context, *gopf.Review[*Thing]) error {
		return func(_ context.Context, r *review) error { d.Add("%s %s", id, r.Operation); return nil }
	}
	x.Mutate("m-all", note("m-all"))
	x.Mutate("m-delete", note("m-delete"), gopf.Operations(admissionv1.Delete))
	x.Validate("v-some", note("v-some"), gopf.Operations(admissionv1.Create, admissionv1.Delete))
	w.run(op)
	u := w.try(cluster)
	w.must(u.create("a", fields{}))
	d.CheckNew(t, "m-all CREATE", "v-some CREATE")
	w.must(u.patch("a", spec(fields{"field": "y"})))
	d.CheckNew(t, "m-all UPDATE")
	if err := u.delete("a"); err != nil {
		t.Fatal(err)
	}
	d.CheckNew(t, "m-delete DELETE", "v-some DELETE")
}

func TestDefaultsAreMutatedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	x.Mutate("defaults", func(_ context.Context, r *review) error {
		if r.Object.Spec.Size == 0 {
			r.Patch.Set("spec.size", 5)
		}
		r.Patch.Label("app.kubernetes.io/name", r.Object.Name)
		r.Patch.Unannotate("gone")
		r.Patch.Edit(func(thing *Thing) { thing.Spec.Field += "!" })
		return nil
	}, gopf.Operations(admissionv1.Create))
	x.Validate("validates_only", func(_ context.Context, r *review) error {
		r.Patch.Set("spec.size", 1000)
		return nil
	}, gopf.Operations(admissionv1.Create))
	o := w.run(op)
	u := w.try(cluster)
	made := w.must(u.create("a", fields{
		"metadata": fields{"annotations": fields{"gone": "soon", "stays": "here"}},
		"spec":     fields{"field": "x", "unknown": []any{"to", "the", "type"}},
	}))
	got := made.Object["spec"].(fields)
	if got["size"] != int64(5) || got["field"] != "x!" || len(got["unknown"].([]any)) != 3 {
		t.Errorf("the spec is %v", got)
	}
	if made.GetLabels()["app.kubernetes.io/name"] != "a" || len(made.GetAnnotations()) != 1 {
		t.Errorf("the metadata is %v", made.Object["metadata"])
	}
	o.Log.WaitFor(t, "validates_only", "only validates")
	made = w.must(u.create("b", spec(fields{"size": 7})))
	if got := made.Object["spec"].(fields)["size"]; got != int64(7) {
		t.Errorf("what was given is replaced by %v", got)
	}
}

func TestDryRunsHaveNoSideEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var effects atomic.Int32
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("check", func(_ context.Context, r *review) error {
		if !r.DryRun {
			effects.Add(1)
		}
		return nil
	}, gopf.SideEffects())
	w.run(op)
	if got := w.webhooks(validating)["check."+w.managed]["sideEffects"]; got != "NoneOnDryRun" {
		t.Errorf("side effects: %v", got)
	}
	u := w.try(cluster)
	w.must(u.create("a", fields{}, dryRun))
	if effects.Load() != 0 {
		t.Error("the dry run had an effect")
	}
	w.must(u.create("a", fields{}))
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

func TestReviewsReachTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("quota", func(ctx context.Context, r *review) error {
		limits := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "limits"}}
		if err := r.API.Get(ctx, limits); err != nil {
			return err
		}
		if limits.Data["field"] != r.Object.Spec.Field {
			return gopf.Deny("only %s is allowed", limits.Data["field"])
		}
		return nil
	})
	gopf.RegisterType[*corev1.ConfigMap](op, "v1/configmaps")
	w.run(op)
	w.make(configmaps, w.namespace, "limits", fields{"data": fields{"field": "x"}})
	u := w.try(cluster)
	w.must(u.create("a", spec(fields{"field": "x"})))
	_, err := u.create("b", spec(fields{"field": "y"}))
	denied(t, err, http.StatusForbidden, "only x is allowed")
}
