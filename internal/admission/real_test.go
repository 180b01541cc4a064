package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

func TestClusterShowsDenialsAndWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control(webhook.Local{},
		w.handler("Check_Field", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
			r.Review.Warn("careful,\nplease")
			if v, _ := r.Body.Lookup("spec", "field"); v == "bad" {
				return &handler.DeniedError{Code: http.StatusTeapot, Err: errors.New("bad field")}
			}
			return nil
		}))
	collection := fmt.Sprintf("/apis/%s/namespaces/%s/things", w.things.APIVersion(), w.namespace)

	resp, body := w.raw(http.MethodPost, collection, w.thing("bad", `,"spec":{"field":"bad"}`))
	want := `admission webhook \"check-field.` + w.managed + `\" denied the request: bad field`
	if resp.StatusCode != http.StatusTeapot || !strings.Contains(body, want) {
		t.Errorf("denied: got %d %s", resp.StatusCode, body)
	}
	if got := resp.Header.Get("Warning"); got != `299 - "careful, please"` {
		t.Errorf("the warning of a denial: got %s", got)
	}
	resp, body = w.raw(http.MethodPost, collection, w.thing("good", ""))
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("Warning") != `299 - "careful, please"` {
		t.Errorf("granted: got %d %s %s", resp.StatusCode, body, resp.Header)
	}
}

// The handler allows nothing. With the failure policy Ignore, an HTTP error would be an
// approval.
func TestClusterDeniesObjectsThatCannotBeReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	no := func(context.Context, *handler.Request) error { return &handler.DeniedError{Err: errors.New("no")} }
	// Other tests create ConfigMaps, which must not be denied.
	own := []metav1.LabelSelectorRequirement{{Key: w.managed, Operator: "Exists"}}
	configMaps := w.handler("maps", handler.Admission{IgnoreFailures: true, Labels: own}, no)
	configMaps.Of, _ = kind.Parse("v1/configmaps")
	w.control(webhook.Local{}, w.handler("things", handler.Admission{IgnoreFailures: true}, no), configMaps)
	things := fmt.Sprintf("/apis/%s/namespaces/%s/things", w.things.APIVersion(), w.namespace)
	maps := "/api/v1/namespaces/" + w.namespace + "/configmaps"
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	for name, c := range map[string]struct{ path, object string }{
		"fine":                     {things, w.thing("fine", "")},
		"deep":                     {things, w.thing("deep", `,"spec":`+nested(1_500))},
		"too deep for the decoder": {things, w.thing("deeper", `,"spec":`+nested(9_990))},
		"long when escaped":        {maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"long","labels":{"` + w.managed + `":""}},"data":{"a":"` + strings.Repeat("<", 900<<10) + `"}}`},
	} {
		resp, body := w.raw(http.MethodPost, c.path, c.object)
		if !strings.Contains(body, "denied the request") {
			t.Errorf("%s: got %d %.300s", name, resp.StatusCode, body)
		}
	}
}

func TestClusterAppliesMutationsAndDryRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var effects atomic.Int32
	w.control(webhook.Local{Path: "/some/path"},
		w.handler("defaults", handler.Admission{Mutating: true, SideEffects: true}, func(_ context.Context, r *handler.Request) error {
			if !r.Review.DryRun {
				effects.Add(1)
			}
			if _, there := r.Body.Lookup("spec", "size"); !there {
				r.Patch.Edit(func(fields map[string]any) { fields["spec"] = map[string]any{"size": "1Gi"} })
				r.Patch.Set("yes", "metadata", "labels", "defaulted")
				r.Patch.Set(nil, "metadata", "annotations", "gone")
			}
			return nil
		}))
	annotated := w.described(`{"name":"a","annotations":{"gone":"soon"}}`, `,"x":1`)
	for _, params := range [][]kube.Param{{kube.DryRun()}, nil} {
		b := w.create(kube.Target{Info: w.things, Namespace: w.namespace}, annotated, params...)
		if fieldOf(t, b, "spec", "size") != "1Gi" || b.Labels()["defaulted"] != "yes" || b.Annotations() != nil {
			t.Errorf("got %s", b.Raw())
		}
		if got, want := effects.Load(), int32(1-len(params)); got != want {
			t.Errorf("%d side effects, want %d", got, want)
		}
	}
}

func TestClusterReviewsSubresources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deny := func(what string) handlerFunc {
		return func(_ context.Context, r *handler.Request) error {
			return &handler.DeniedError{Code: 403, Err: fmt.Errorf("%s: %s of a %s", what, r.Review.Operation, r.Review.Kind.Kind)}
		}
	}
	unless := func(typed bool, fn handlerFunc) *handler.Handler {
		h := w.handler("any", handler.Admission{Subresource: "*", Typed: typed}, fn)
		h.When = []func(*handler.Request) bool{func(r *handler.Request) bool { return r.Review.DryRun }}
		return h
	}
	w.control(webhook.Local{},
		w.handler("status", handler.Admission{Subresource: "status"}, deny("status")),
		w.handler("scale", handler.Admission{Subresource: "scale"}, deny("scale")),
		unless(false, deny("any")))
	w.create(kube.Target{Info: w.things, Namespace: w.namespace}, w.thing("a", `,"spec":{"replicas":1}`))

	for name, c := range map[string]struct {
		subresource string
		dryRun      bool
		want        []string // possible errors; nil means success
	}{
		"the object":                  {"", false, nil},
		"status":                      {"status", false, []string{"status: UPDATE of a Thing"}},
		"scale":                       {"scale", false, []string{"scale: UPDATE of a Scale"}},
		"the object, of all":          {"", true, []string{"any: UPDATE of a Thing"}},
		"a subresource, of all":       {"status", true, []string{"any: UPDATE of a Thing", "status: UPDATE of a Thing"}},
		"another subresource, of all": {"scale", true, []string{"any: UPDATE of a Scale", "scale: UPDATE of a Scale"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := w.target("a")
			target.Subresource = c.subresource
			params := []kube.Param{}
			if c.dryRun {
				params = append(params, kube.DryRun())
			}
			patch := fmt.Sprintf(`{"spec":{"replicas":%d},"status":{"x":%d}}`, time.Now().Nanosecond(), time.Now().Nanosecond())
			_, err := w.Patch(w.ctx, target, types.MergePatchType, []byte(patch), params...)
			if (err == nil) != (c.want == nil) || err != nil && !slices.ContainsFunc(c.want, func(s string) bool { return strings.Contains(err.Error(), s) }) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestClusterFiltersByLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	w.control(webhook.Local{}, w.handler("labelled", handler.Admission{
		Labels: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"prod"}}, {Key: "skip", Operator: "DoesNotExist"}},
	}, func(context.Context, *handler.Request) error { asked.Add(1); return nil }))
	for name, labels := range map[string]string{"a": `{}`, "b": `{"tier":"test"}`, "c": `{"tier":"prod"}`, "d": `{"tier":"prod","skip":"me"}`} {
		w.create(kube.Target{Info: w.things, Namespace: w.namespace}, w.described(`{"name":"`+name+`","labels":`+labels+`}`, ""))
	}
	if asked.Load() != 1 {
		t.Errorf("the handler was called %d times", asked.Load())
	}
}

func TestClusterExemptsSystemNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := calling("no-configmaps", handler.Admission{Labels: []metav1.LabelSelectorRequirement{{Key: w.managed, Operator: "Exists"}}},
		func(context.Context, *handler.Request) error { return errors.New("refused") })
	h.Of = kind.Plural("configmaps").InGroup("")
	w.control(webhook.Local{}, h)
	body := []byte(`{"metadata":{"generateName":"x-","labels":{"` + w.managed + `":""}}}`)
	for namespace, refused := range map[string]bool{w.namespace: true, "kube-system": false} {
		_, err := w.WithBackoffs(nil).Create(w.ctx, kube.Target{Info: configMaps, Namespace: namespace}, body, kube.DryRun())
		if (err != nil) != refused {
			t.Errorf("in %s: got %v", namespace, err)
		}
	}
}

func TestClusterRefusesTheNamesAndPathsThatWeReplace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := newKeeper(w.Client, nil, false, &ConfigurationsOptions{Managed: w.managed, Log: discard()})
	entry := func(name string, client webhook.ClientConfig) Entry {
		h := w.handler("x", handler.Admission{}, nil)
		e := Plan{Managed: w.managed, Handlers: handler.Set{h}, Resources: w.all, Server: client}.Entries(false)[0]
		e["name"], e["clientConfig"] = name, clientConfig(client)
		return e
	}
	url := webhook.ClientConfig{URL: "https://localhost/x"}
	behind := func(path string) webhook.ClientConfig {
		return webhook.ClientConfig{Service: &webhook.ServiceRef{Namespace: "x", Name: "y", Path: path}}
	}
	for name, c := range map[string]struct {
		entry Entry
		fine  bool
	}{
		"capital letters":         {entry("Check."+w.managed, url), false},
		"other alphabets":         {entry("größe."+w.managed, url), false},
		"our name for those":      {entry(Name("Größe", w.managed), url), true},
		"two parts":               {entry("check.managed", url), false},
		"paths with underscores":  {entry("a.b.c", behind("/some_id")), false},
		"paths with escapes":      {entry("a.b.c", behind("/some%21id")), false},
		"paths with two slashes":  {entry("a.b.c", behind("/p//id")), false},
		"our paths for those":     {entry("a.b.c", For(behind("/p/"), "Some_id!")), true},
		"paths with inner slash":  {entry("a.b.c", For(behind(""), "check/spec.field")), true},
		"URLs with all of that":   {entry("a.b.c", For(url, "Some_id!/x")), true},
		"plain HTTP":              {entry("a.b.c", webhook.ClientConfig{URL: "http://localhost/x"}), false},
		"a service without paths": {entry("a.b.c", behind("")), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Create(w.ctx, kube.Target{Info: k.info}, k.body([]Entry{c.entry}, nil), kube.DryRun())
			if (err == nil) != c.fine {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClusterConfigurationsAreManaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	grant := func(context.Context, *handler.Request) error { return nil }
	handlers := handler.Set{
		w.handler("kept", handler.Admission{Persistent: true}, grant),
		w.handler("changing", handler.Admission{Mutating: true, Labels: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Exists"}}}, grant),
	}
	c, stop := w.control(webhook.Local{}, handlers...)

	// Defaults that the server adds to our entries are not changes.
	time.Sleep(time.Second) // the watches have started and find no difference
	c.Discovered(slices.Clone(w.all))
	time.Sleep(100 * time.Millisecond)
	if d := cmp.Diff(map[string]int{"create": 2}, w.written()); d != "" {
		t.Error(d)
	}

	// Another client adds its own webhook and changes ours.
	before := w.configuration(false)
	list := webhooks(before)
	other := Entry{
		"name": "theirs.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"clientConfig": map[string]any{"url": "https://localhost:1/x"}, "failurePolicy": "Ignore",
		"rules": []any{map[string]any{"apiGroups": []any{w.things.Group}, "apiVersions": []any{"v1"}, "resources": []any{"nothings"}, "operations": []any{"CREATE"}}},
	}
	spoilt := append([]any{other}, list[1:]...)
	k := newKeeper(w.Client, nil, false, &ConfigurationsOptions{Managed: w.managed, Log: discard()})
	if _, err := w.Patch(w.ctx, k.target(), types.MergePatchType, mustJSON(map[string]any{"webhooks": spoilt})); err != nil {
		t.Fatal(err)
	}
	w.eventually("the webhooks are restored", func() bool { return len(webhooks(w.configuration(false))) == len(list)+1 })
	restored := w.configuration(false)
	if d := cmp.Diff(ownOf(list, w.managed), ownOf(webhooks(restored), w.managed)); d != "" {
		t.Error(d)
	}
	if first := webhooks(restored)[0].(map[string]any); first["name"] != "theirs.example.com" {
		t.Errorf("the foreign webhook was moved: %v", first["name"])
	}

	// Another client deletes the configurations.
	if err := w.Delete(w.ctx, k.target(), kube.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the configuration is back", func() bool {
		b, err := w.Get(w.ctx, k.target())
		return err == nil && len(ownOf(webhooks(b), w.managed)) == len(list)
	})

	stop()
	if got := webhooks(w.configuration(false)); len(got) != 1 || got[0].(map[string]any)["name"] != "kept."+w.managed {
		t.Errorf("left at the end: %v", got)
	}
	if got := webhooks(w.configuration(true)); len(got) != 0 {
		t.Errorf("left at the end: %v", got)
	}
	// Two creations, one foreign change and its restoration, one creation after the
	// deletion, and two cleanups.
	if d := cmp.Diff(map[string]int{"create": 3, "patch": 4}, w.written()); d != "" {
		t.Error(d)
	}
}

func TestClusterWithoutTheOperator(t *testing.T) {
	t.Parallel()
	for name, persistent := range map[string]bool{"persistent": true, "not persistent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			grant := func(context.Context, *handler.Request) error { return nil }
			_, stop := w.control(webhook.Local{}, w.handler("check", handler.Admission{Persistent: persistent}, grant))
			w.create(kube.Target{Info: w.things, Namespace: w.namespace}, w.thing("before", ""))
			stop()
			w.asks("probe-validating", false)
			_, err := w.WithBackoffs(nil).Create(w.ctx, kube.Target{Info: w.things, Namespace: w.namespace}, []byte(w.thing("after", "")))
			if (err != nil) != persistent || err != nil && !strings.Contains(err.Error(), "failed calling webhook") {
				t.Errorf("got %v", err)
			}
		})
	}
}
