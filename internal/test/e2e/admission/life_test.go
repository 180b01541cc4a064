package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// count is a memo.
type count struct{ atomic.Int32 }

func TestReviewsShareMemosAndIndicesWithOtherHandlers(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	fieldsOf := gopf.Index(x, "fields", func(_ context.Context, s *gopf.Subject[*Thing]) (map[string]string, error) {
		return map[string]string{s.Object.Spec.Field: s.Object.Name}, nil
	})
	x.OnCreate("create", func(_ context.Context, c *gopf.Change[*Thing]) error {
		gopf.Memo[count](c).Add(10)
		c.SetResult("done")
		return nil
	})
	x.Mutate("change", func(_ context.Context, r *review) error {
		d.Add("mutate %s %d", r.Operation, gopf.Memo[count](r).Add(1))
		return nil
	}, gopf.Operations(admissionv1.Create, admissionv1.Update))
	x.Validate("unique", func(_ context.Context, r *review) error {
		d.Add("validate %s %d", r.Operation, gopf.Memo[count](r).Add(1))
		if owner, taken := fieldsOf.One(r.Object.Spec.Field); taken && owner != r.Object.Name {
			return gopf.Deny("%s has it already", owner)
		}
		return nil
	}, gopf.Operations(admissionv1.Create, admissionv1.Update, admissionv1.Delete))
	w.run(op)
	u := w.try(cluster)
	w.must(u.create("a", spec(fields{"field": "x"})))
	if got := d.Take(); !slices.Equal(got[:2], []string{"mutate CREATE 1", "validate CREATE 1"}) {
		t.Errorf("noted: %q", got)
	}
	settled := func() {
		t.Helper()
		kit.Eventually(t, func() error {
			o := w.must(u.things.Get(w.ctx(), "a", metav1.GetOptions{}))
			if o.GetAnnotations()["kopf.zalando.org/last-handled-configuration"] == "" {
				return fmt.Errorf("it is not handled: %v", o.GetAnnotations())
			}
			return nil
		})
	}
	settled()
	// The operator's own records need no review.
	if got := d.Take(); len(got) > 0 {
		t.Errorf("noted: %q", got)
	}
	_, err := u.create("b", spec(fields{"field": "x"}))
	denied(t, err, 403, "a has it already")
	if got := d.Take(); !slices.Contains(got, "mutate CREATE 1") || !slices.Contains(got, "validate CREATE 1") {
		t.Errorf("noted: %q", got)
	}
	w.must(u.patch("a", spec(fields{"field": "z"})))
	if got := d.Take(); !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "mutate UPDATE 1") }) {
		t.Errorf("noted: %q", got)
	}
	kit.Eventually(t, func() error {
		_, err := u.create("b", spec(fields{"field": "x"}), dryRun)
		return err
	})
	d.Take()
	if err := u.delete("a"); err != nil {
		t.Fatal(err)
	}
	if got := d.Take(); !strings.HasPrefix(got[len(got)-1], "validate DELETE 1") { // after writes of the operator, perhaps
		t.Errorf("noted: %q", got)
	}
}

func TestReviewsWaitForIndices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := w.try(cluster)
	w.must(u.create("a", spec(fields{"field": "x"})))
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	indexing := make(chan struct{})
	var asked, missed atomic.Int32
	all := gopf.Index(x, "fields", func(_ context.Context, s *gopf.Subject[*Thing]) (map[string]string, error) {
		<-indexing
		return map[string]string{s.Object.Spec.Field: s.Object.Name}, nil
	})
	x.Validate("unique", func(context.Context, *review) error {
		if asked.Add(1); all.Len() == 0 {
			missed.Add(1)
		}
		return nil
	})
	o := w.start(op)
	o.Log.WaitFor(t, "Client is configured")
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		w.must(u.create("b", fields{}, dryRun))
	}
	close(indexing)
	w.asked(true)
	w.must(u.create("b", fields{}, dryRun))
	if asked.Load() == 0 || missed.Load() > 0 {
		t.Errorf("asked %d times, of which %d without an index", asked.Load(), missed.Load())
	}
}

// spoil changes the list of webhooks in the validating configuration.
func (w *world) spoil(change func(list []any) []any) {
	w.t.Helper()
	client := w.client(validating, "")
	o := w.must(client.Get(w.ctx(), w.managed, metav1.GetOptions{}))
	list, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	raw, err := json.Marshal(fields{"webhooks": change(list)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.must(client.Patch(w.ctx(), w.managed, types.MergePatchType, raw, metav1.PatchOptions{}))
}

func TestConfigurationsAreRestoredAndOthersLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { return gopf.Deny("never") })
	o := w.run(op)
	before := w.webhooks(validating)
	theirs := fields{
		"name": "theirs.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
		"clientConfig": fields{"url": "https://localhost:1/x"},
		"rules":        []any{fields{"apiGroups": []any{w.group}, "apiVersions": []any{"v1"}, "resources": []any{"nothings"}, "operations": []any{"CREATE"}}},
	}
	w.spoil(func(list []any) []any {
		for _, e := range list {
			e.(fields)["failurePolicy"] = "Ignore"
		}
		return append([]any{theirs}, list[:1]...)
	})
	same := func(want int) {
		t.Helper()
		kit.Eventually(t, func() error {
			now := w.webhooks(validating)
			delete(now, "theirs.example.com")
			if len(now) != want || fmt.Sprint(now) != fmt.Sprint(before) {
				return fmt.Errorf("got %v, want %v", now, before)
			}
			return nil
		})
	}
	same(len(before))
	w.asked(true)
	w.remove(validating, "", w.managed)
	same(len(before))
	w.spoil(func(list []any) []any { return append(list, theirs) })
	o.Stop()
	if got := slices.Collect(maps.Keys(w.webhooks(validating))); !slices.Equal(got, []string{"theirs.example.com"}) {
		t.Errorf("left at the end: %q", got)
	}
	w.asked(false)
	w.must(w.try(cluster).create("a", fields{}))
}

func TestWhatHappensWithoutTheOperator(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []gopf.ReviewOption
		refused bool
	}{
		"by default":                          {nil, false},
		"persistent":                          {[]gopf.ReviewOption{gopf.Persistent()}, true},
		"persistent and failures are ignored": {[]gopf.ReviewOption{gopf.Persistent(), gopf.IgnoreFailures()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			declare := func() *gopf.Operator {
				op := w.operator()
				gopf.For[*Thing](op, w.things()).Validate("check", func(_ context.Context, r *review) error {
					if r.Object.Spec.Field == "bad" {
						return gopf.Deny("bad")
					}
					return nil
				}, test.options...)
				return op
			}
			o := w.run(declare())
			u := w.try(cluster)
			w.must(u.create("a", fields{}))
			_, err := u.create("b", spec(fields{"field": "bad"}))
			denied(t, err, 403, "bad")
			o.Stop()
			w.asked(false)
			_, err = u.create("c", fields{})
			if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "failed calling webhook") {
				t.Errorf("without the operator: got %v", err)
			}
			w.run(declare())
			w.must(u.create("d", fields{}))
			_, err = u.create("e", spec(fields{"field": "bad"}))
			denied(t, err, 403, "bad")
		})
	}
}

func TestPausedAndWaitingOperatorsAnswer(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world, op *gopf.Operator){
		"paused": func(_ *world, op *gopf.Operator) { op.Pause("the test wants it") },
		"standby": func(w *world, op *gopf.Operator) {
			leader := gopf.New()
			leader.Settings.Election.Enabled = true
			leader.Settings.Election.Namespace, leader.Settings.Election.Name = w.namespace, "operator"
			op.Settings.Election = leader.Settings.Election
			leader.Settings.Election.Identity, op.Settings.Election.Identity = "leader", "standby"
			w.start(leader).Log.WaitFor(w.t, "leader")
			kit.Eventually(w.t, func() error {
				lease, err := w.client(leases, w.namespace).Get(w.ctx(), "operator", metav1.GetOptions{})
				if err == nil && lease.Object["spec"].(fields)["holderIdentity"] != "leader" {
					err = fmt.Errorf("the lease is %v", lease.Object["spec"])
				}
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := newWorld(t), &kit.Diary{}
			op := w.operator()
			x := gopf.For[*Thing](op, w.things())
			x.OnCreate("create", func(context.Context, *gopf.Change[*Thing]) error { d.Add("handled"); return nil })
			x.Validate("check", func(_ context.Context, r *review) error {
				if r.Object.Spec.Field == "bad" {
					return gopf.Deny("bad")
				}
				return nil
			})
			prepare(w, op)
			w.run(op)
			u := w.try(cluster)
			_, err := u.create("a", spec(fields{"field": "bad"}))
			denied(t, err, 403, "bad")
			w.must(u.create("a", fields{}))
			time.Sleep(300 * time.Millisecond)
			d.CheckNew(t) // it does nothing else
		})
	}
}

func TestKindsThatComeLaterAreReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	later := &world{t: t, group: "later." + w.group, namespace: w.namespace}
	op.Resource(later.things()).Validate("later", func(context.Context, *untyped) error { return gopf.Deny("no") })
	o := w.run(op)
	o.Log.WaitFor(t, "the cluster does not have the resource")
	if got := w.webhooks(validating)["later."+w.managed]["rules"]; len(list(got)) != 0 {
		t.Errorf("the rules are %v", got)
	}
	later.define()
	u := later.try(cluster)
	kit.Eventually(t, func() error {
		if _, err := u.create("a", fields{}, dryRun); err == nil || !strings.Contains(err.Error(), "denied the request: no") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	w.remove(crds, "", "things."+later.group)
	kit.Eventually(t, func() error {
		if got := w.webhooks(validating)["later."+w.managed]["rules"]; len(list(got)) != 0 {
			return fmt.Errorf("the rules are %v", got)
		}
		return nil
	})
}

func list(v any) []any { all, _ := v.([]any); return all }

// Kinds that have nothing but reviews are not followed: that would cost memory and
// permissions for nothing.
func TestKindsWithReviewsOnlyAreNotFollowed(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { return nil })
	config := rest.CopyConfig(cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/things") {
				d.Add("%s %s", r.Method, r.URL)
			}
			return next.RoundTrip(r)
		})
	})
	w.run(op, gopf.Cluster(config))
	w.must(w.try(cluster).create("a", fields{}))
	d.CheckNew(t)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSystemNamespacesStayFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	refuse := func(context.Context, *untyped) error { return gopf.Deny("no") }
	x := op.Resource("v1/configmaps")
	x.WithLabel("of", gopf.Is(w.group)).Validate("some", refuse)
	x.WithLabel("of-all", gopf.Is(w.group)).Validate("all", refuse, gopf.EveryNamespace())
	own := w.make(namespaces, "", "", fields{"metadata": fields{"generateName": "reviewed-own-"}}).GetName()
	t.Cleanup(func() { w.remove(namespaces, "", own) })
	op.OnLogin("login", func(context.Context, *gopf.Activity) (*gopf.Login, error) {
		return &gopf.Login{Config: cluster, Namespace: own}, nil
	})
	w.run(op, gopf.Cluster(nil))
	for _, test := range []struct {
		label, namespace string
		refused          bool
	}{
		{"of", own, false}, {"of", w.namespace, true}, {"of", "kube-system", false},
		{"of-all", own, true}, {"of-all", w.namespace, true}, {"of-all", "kube-system", true},
	} {
		_, err := w.client(configmaps, test.namespace).Create(w.ctx(), &unstructured.Unstructured{Object: fields{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": "x", "labels": fields{test.label: w.group}},
		}}, metav1.CreateOptions{DryRun: []string{dryRun}})
		if (err != nil) != test.refused {
			t.Errorf("%s in %s: got %v", test.label, test.namespace, err)
		}
	}
}
