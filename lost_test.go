package gopf

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// editing returns a request about a pod, and its log.
func editing(t *testing.T, id string) (*handler.Request, *bytes.Buffer) {
	t.Helper()
	body, err := object.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","uid":"u","resourceVersion":"1","labels":{"a":"b"},"creationTimestamp":"2026-01-01T00:00:00Z"},
		"spec":{"nodeName":"n","priority":1,"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1000m"}}}],"unknown":{"x":1}},"status":{"phase":"Pending"}}`))
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	return &handler.Request{
		Body: body, Handler: &handler.Handler{ID: id}, Patch: &patch.Patch{}, Cause: &cause.Cause{Reason: cause.Create},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

func TestEditsOfTheObjectAreReported(t *testing.T) {
	type pod = Change[*corev1.Pod]
	for name, c := range map[string]struct {
		edit func(*pod)
		want string // the fields; "" means no report
	}{
		"nothing":           {func(*pod) {}, ""},
		"a field":           {func(c *pod) { c.Object.Spec.NodeName = "m" }, "spec.nodeName"},
		"several fields":    {func(c *pod) { c.Object.Spec.NodeName, c.Object.Status.Phase = "m", "Running" }, "spec.nodeName, status.phase"},
		"a removed field":   {func(c *pod) { c.Object.Spec.NodeName = "" }, "spec.nodeName"},
		"a removed object":  {func(c *pod) { c.Object.Labels = nil }, "metadata.labels.a"},
		"a label":           {func(c *pod) { c.Object.Labels["x.y/z"] = "v" }, "/metadata/labels/x.y~1z"},
		"an item of a list": {func(c *pod) { c.Object.Spec.Containers[0].Image = "j" }, "spec.containers"},
		"an empty object":   {func(c *pod) { c.Object.Annotations = map[string]string{} }, ""},
		"a new object":      {func(c *pod) { c.Object.Annotations = map[string]string{"a": "1", "b": "2"} }, "metadata.annotations.a, metadata.annotations.b"},
		"many fields":       {func(c *pod) { c.Object.Annotations = manyKeys() }, "metadata.annotations.a, metadata.annotations.b, metadata.annotations.c, metadata.annotations.d, metadata.annotations.e, and 2 more"},
		"only the Go value": {func(c *pod) { _ = c.Object.Spec.Containers[0].Resources.Limits.Cpu().String() }, ""},
		"a patched field":   {func(c *pod) { c.Object.Spec.NodeName = "m"; c.Patch.Set("spec.nodeName", "m") }, ""},
		"another value":     {func(c *pod) { c.Object.Spec.NodeName = "m"; c.Patch.Set("spec.nodeName", "o") }, "spec.nodeName"},
		"another field":     {func(c *pod) { c.Object.Spec.NodeName = "m"; c.Patch.Set("spec.hostname", "m") }, "spec.nodeName"},
		"a patched status":  {func(c *pod) { c.Object.Status.Phase = "Running"; c.Patch.MergeStatus(c.Object.Status) }, ""},
		"a part of a patch": {func(c *pod) {
			c.Object.Status.Phase = "Running"
			c.Patch.MergeStatus(corev1.PodStatus{Phase: "Running", Reason: "r"})
		}, ""},
		"a patched label":   {func(c *pod) { c.Object.Labels["x"] = "v"; c.Patch.Label("x", "v") }, ""},
		"a patched removal": {func(c *pod) { delete(c.Object.Labels, "a"); c.Patch.Unlabel("a") }, ""},
		"an edit of the patch": {func(c *pod) {
			c.Object.Spec.NodeName = "m"
			c.Patch.Edit(func(p *corev1.Pod) { p.Spec = c.Object.Spec })
		}, ""},
		"a newer version": {func(c *pod) { c.Object.ResourceVersion, c.Object.Spec.NodeName = "2", "m" }, ""},
		"no object":       {func(c *pod) { c.Object = nil }, ""},
	} {
		req, log := editing(t, name)
		fn := func(_ context.Context, arg *pod) error { c.edit(arg); return nil }
		if err := erase(fn, reportingLostEdits())(t.Context(), req); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := "Handler '" + name + "' modified c.Object (" + c.want + "); such edits are lost. Use c.Patch."
		switch {
		case c.want == "" && log.Len() > 0:
			t.Errorf("%s: got %s", name, log)
		case c.want != "" && !strings.Contains(log.String(), `level=WARN msg="`+want+`"`):
			t.Errorf("%s: got %q, want %q", name, log, want)
		}
	}
}

func manyKeys() map[string]string {
	return map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6", "g": "7"}
}

func TestEditsOfUntypedObjectsAreReported(t *testing.T) {
	for _, patched := range []bool{false, true} {
		req, log := editing(t, "h")
		_ = erase(func(_ context.Context, c *Change[Unstructured]) error {
			c.Object.Object["spec"].(map[string]any)["priority"] = 2 // an int, where decoded objects have an int64
			if patched {
				c.Patch.Set("spec.priority", 2)
			}
			return nil
		}, reportingLostEdits())(t.Context(), req)
		if got := strings.Contains(log.String(), "(spec.priority)"); got == patched {
			t.Errorf("patched is %v: got %q", patched, log)
		}
	}
}

func TestLostEditsAreReportedOncePerHandler(t *testing.T) {
	reporter := reportingLostEdits()
	var got []string
	for _, id := range []string{"a", "a", "b", "a"} {
		req, log := editing(t, id)
		_ = erase(func(_ context.Context, c *Change[*corev1.Pod]) error {
			c.Object.Spec.NodeName = "m"
			return nil
		}, reporter)(t.Context(), req)
		if log.Len() > 0 {
			got = append(got, id)
		}
	}
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("reports of %q", got)
	}
}

func TestLostEditsAreReportedOnlyOnDemand(t *testing.T) {
	for name, reporter := range map[string]*hooks{"off": {}, "none": nil} {
		req, log := editing(t, "h")
		_ = erase(func(_ context.Context, c *Change[*corev1.Pod]) error {
			c.Object.Spec.NodeName = "m"
			return nil
		}, reporter)(t.Context(), req)
		if log.Len() > 0 {
			t.Errorf("%s: got %s", name, log)
		}
		s, err := newSubject[*corev1.Pod](req)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() { reporter.check(s) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestOnlyMutatingReviewsReportLostEdits(t *testing.T) {
	for _, mutating := range []bool{false, true} {
		req, log := editing(t, "h")
		req.Handler.Admission, req.Cause, req.Review = &handler.Admission{Mutating: mutating}, nil, &handler.Review{New: req.Body, Operation: "CREATE"}
		_ = reviewer(func(_ context.Context, r *Review[*corev1.Pod]) error {
			r.Object.Spec.NodeName = "m"
			return nil
		}, reportingLostEdits())(t.Context(), req)
		if got := strings.Contains(log.String(), "(spec.nodeName)"); got != mutating {
			t.Errorf("mutating is %v: got %q", mutating, log)
		}
	}
}
