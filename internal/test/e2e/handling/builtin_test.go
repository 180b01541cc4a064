package handling_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// labelled is an object of the test's own among those of Kubernetes.
func labelled(of fields) fields {
	of["metadata"] = fields{"labels": fields{"own": "yes"}}
	return of
}

func TestConfigMapsAreHandledOverTheirWholeLife(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*corev1.ConfigMap](op, "v1/configmaps").WithLabel("own", gopf.Is("yes"))
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*corev1.ConfigMap]) error {
		d.Add("create %v", c.Object.Data)
		return nil
	})
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*corev1.ConfigMap]) error {
		d.Add("update %v->%v: %s", c.Old.Data, c.Object.Data, c.Diff)
		return nil
	})
	x.OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*corev1.ConfigMap]) error {
		d.Add("delete %v", c.Object.Data)
		return nil
	})
	o := s.start(op, nil)
	s.Create("v1/configmaps", "x", labelled(fields{"data": fields{"k": "v"}}))
	essence := func(v string) string {
		return `{"data":{"k":"` + v + `"},"metadata":{"labels":{"own":"yes"}}}`
	}
	s.waitFor("v1/configmaps", "x", handled(essence("v")))
	s.Patch("v1/configmaps", "x", fields{"data": fields{"k": "w"}})
	s.waitFor("v1/configmaps", "x", handled(essence("w")))
	s.Delete("v1/configmaps", "x")
	s.waitGone("v1/configmaps", "x")
	d.Check(t, "create map[k:v]", `update map[k:v]->map[k:w]: change data.k: "v" -> "w"`, "delete map[k:w]")
	if got := o.Log.With("Objects of a built-in kind"); len(got) != 1 {
		t.Errorf("it is announced %d times that configmaps will be written to: %q", len(got), got)
	}
	// Every namespace has this one, and nobody asked for it to be handled.
	root := s.waitFor("v1/configmaps", "kube-root-ca.crt", func(*unstructured.Unstructured) error { return nil })
	if _, found := root.GetAnnotations()[lastHandled]; found || len(root.GetFinalizers()) > 0 {
		t.Errorf("a config map that does not match has traces: %v", root.Object["metadata"])
	}
}

func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	const before, after = "correct horse", "battery staple"
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*corev1.Secret](op, "v1/secrets")
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*corev1.Secret]) error {
		d.Add("create %s", c.Object.Data["password"])
		if c.Retry == 0 {
			return gopf.RetryAfter(0, fmt.Errorf("not yet")) // so that progress is stored, too
		}
		return nil
	})
	x.OnCreate("other_fn", func(context.Context, *gopf.Change[*corev1.Secret]) error { return nil })
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*corev1.Secret]) error {
		for _, item := range c.Diff {
			d.Add("update of %s", strings.Join(item.Path, "."))
		}
		d.Add("update to %s", c.Object.Data["password"])
		if text := fmt.Sprint(c.Old, c.OldRaw(), c.Diff); leaks(text, before) || leaks(text, after) {
			t.Errorf("the old state tells secrets: %s", text)
		}
		return nil
	})
	o := s.start(op, nil)
	s.Create("v1/secrets", "x", fields{"stringData": fields{"user": "me", "password": before}})
	check := func(obj *unstructured.Unstructured) error {
		text := fmt.Sprint(obj.GetAnnotations())
		if leaks(text, before) || leaks(text, after) {
			t.Errorf("the annotations tell secrets: %s", text)
		}
		if obj.GetAnnotations()[lastHandled] == "" {
			return fmt.Errorf("not handled yet: %s", text)
		}
		return pendingNone(obj)
	}
	s.waitFor("v1/secrets", "x", check)
	s.Patch("v1/secrets", "x", fields{"stringData": fields{"password": after}})
	d.WaitFor(t, "update to "+after)
	s.waitFor("v1/secrets", "x", check)
	o.staysQuiet(t, d)
	d.Check(t, "create "+before, "create "+before, "update of data.password", "update to "+after)
	if text := o.Log.String(); leaks(text, before) || leaks(text, after) {
		t.Error("the logs tell secrets")
	}
}

// leaks tells whether a text has a secret in it, plain or encoded.
func leaks(text, secret string) bool {
	return strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret)))
}

func TestPodsAreHandledWhileTheKubeletWorksOnThem(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*corev1.Pod](op, "v1/pods")
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*corev1.Pod]) error {
		d.Add("create %s", c.Object.Name)
		c.SetResult("this is not in the schema")
		c.Patch.Label("handled", "yes")
		return nil
	})
	x.OnField("phase_fn", "status.phase", func(_ context.Context, c *gopf.Change[*corev1.Pod]) error {
		was, _ := c.OldValue()
		d.Add("phase %v->%s", was, c.Object.Status.Phase)
		return nil
	})
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*corev1.Pod]) error {
		d.Add("update: %s", c.Diff.At("metadata", "labels"))
		return nil
	})
	x.OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*corev1.Pod]) error {
		d.Add("delete %s", c.Object.Name)
		return nil
	})
	o := s.start(op, nil)
	s.Create("v1/pods", "x", fields{"spec": fields{"containers": []any{fields{"name": "main", "image": "none"}}}})
	d.WaitFor(t, "phase <nil>->Pending")
	settled := func(phase string) {
		t.Helper()
		s.waitFor("v1/pods", "x", pendingNoneAnd(func(obj *unstructured.Unstructured) error {
			if base := obj.GetAnnotations()[lastHandled]; !strings.Contains(base, `"status":{"phase":"`+phase+`"}`) || !strings.Contains(base, `"handled":"yes"`) {
				return fmt.Errorf("last handled: %s", base)
			}
			return nil
		}))
	}
	settled("Pending")
	s.Patch("v1/pods", "x", fields{"status": fields{"phase": "Running", "podIP": "10.0.0.1"}}, "status")
	settled("Running")
	o.staysQuiet(t, d)
	s.Patch("v1/pods", "x", fields{"status": fields{"podIP": "10.0.0.2"}}, "status")
	o.staysQuiet(t, d)
	s.Delete("v1/pods", "x")
	s.waitGone("v1/pods", "x")
	if n := d.Count("create x"); n != 1 {
		t.Errorf("created %d times: %q", n, d.All())
	}
	if d.Count("phase Pending->Running") != 1 || d.Count("delete x") != 1 {
		t.Errorf("calls: %q", d.All())
	}
	if len(o.Log.With("status.create_fn")) == 0 {
		t.Error("nobody was told that the result is dropped")
	}
	t.Logf("calls: %q", d.All())
}
