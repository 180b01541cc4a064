package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const secrets = "v1/secrets"

func secretObject(name, password string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"data":     map[string]any{"user": "YWRtaW4=", "password": password},
	}}
}

// watching is an operator for Secrets whose handlers record and log their arguments.
func watching(diary *calls, key string) *gopf.Operator {
	op := gopf.New()
	if key != "" {
		op.Settings.Persistence.SecretKey = []byte(key)
	}
	x := gopf.For[*corev1.Secret](op, secrets)
	note := func(_ context.Context, ch *gopf.Change[*corev1.Secret]) error {
		old, _ := json.Marshal(ch.OldRaw())
		value, _ := ch.OldValue()
		now, _ := ch.NewValue()
		diary.add("%s %s %v %s", ch.Reason, ch.Object.Name, ch.Diff, old)
		ch.Log.Info("seen", "diff", ch.Diff.String(), "old", string(old), "value", fmt.Sprint(value), "now", fmt.Sprint(now), "typed", fmt.Sprint(ch.Old.Data))
		return nil
	}
	x.OnCreate("create", note)
	x.OnUpdate("update", note)
	x.Field("data.password").OnUpdate("field", note)
	x.OnDelete("delete", note)
	return op
}

// secretive runs a test in virtual time on a cluster with Secrets.
func secretive(t *testing.T, test func(t *testing.T, c *gopftest.Cluster)) {
	synctest.Test(t, func(t *testing.T) { test(t, gopftest.NewCluster(t, secrets)) })
}

func TestDigestsOfSecretsAppearInNoHandlerAndNoLog(t *testing.T) {
	secretive(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		gopftest.Start(t, watching(&diary, ""), c, gopf.Log(log.logger()))
		settle()
		c.Create(t, secretObject("x", "c2VjcmV0"))
		time.Sleep(time.Minute)
		c.Patch(t, secrets, "default", "x", `{"data":{"password":"b3RoZXI="}}`)
		time.Sleep(time.Minute)
		c.Delete(t, secrets, "default", "x")
		time.Sleep(time.Minute)
		if got := diary.all(); len(got) != 4 || !strings.Contains(got[1], `change data.password: "hidden" -> "changed"`) || strings.Contains(got[1], "data.user") {
			t.Errorf("handlers saw %q", got)
		}
		if log.has("hmac-sha256") || log.has("c2VjcmV0") || log.has("b3RoZXI=") {
			t.Errorf("the log shows digests or values:\n%s", strings.Join(log.text, ""))
		}
	})
}

// kubectl apply stores the plain values in an annotation.
func TestNoHandlerAndNoLogShowsTheCopyThatKubectlMakesOfASecret(t *testing.T) {
	secretive(t, func(t *testing.T, c *gopftest.Cluster) {
		const copied = "kubectl.kubernetes.io/last-applied-configuration"
		var diary calls
		var log lines
		op := watching(&diary, "0123456789abcdef")
		x := gopf.For[*corev1.Secret](op, secrets)
		x.Field("metadata.annotations").OnUpdate("annotations", func(_ context.Context, ch *gopf.Change[*corev1.Secret]) error {
			diary.add("annotations %v", ch.Diff)
			ch.Log.Info("seen", "diff", ch.Diff.String())
			return nil
		})
		// Kopf has stored a copy, too.
		kopf := secretObject("y", "b3RoZXI=")
		kopf.SetAnnotations(map[string]string{copied: "PLAIN one", annotated: `{"type":"Opaque","data":{"user":"YWRtaW4=","password":"b3RoZXI="},"metadata":{"annotations":{"` + copied + `":"PLAIN one"}}}` + "\n"})
		kopf.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
		c.Create(t, kopf)
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		if got := diary.all(); len(got) != 0 {
			t.Errorf("handlers were called for what Kopf had handled: %q", got)
		}
		obj := secretObject("x", "c2VjcmV0")
		obj.SetAnnotations(map[string]string{copied: "PLAIN two"})
		c.Create(t, obj)
		time.Sleep(time.Minute)
		c.Patch(t, secrets, "default", "x", `{"metadata":{"annotations":{"`+copied+`":"PLAIN three","team":"a"}},"data":{"password":"b3RoZXI="}}`)
		time.Sleep(time.Minute)
		if got := strings.Join(diary.all(), "\n"); strings.Contains(got, "PLAIN") || !strings.Contains(got, "annotations add") {
			t.Errorf("handlers saw\n%s", got)
		}
		if log.has("PLAIN") {
			t.Errorf("the log shows values:\n%s", strings.Join(log.text, ""))
		}
		for _, name := range []string{"x", "y"} {
			if base := c.Get(t, secrets, "default", name).GetAnnotations()[annotated]; base == "" || strings.Contains(base, "PLAIN") {
				t.Errorf("%s: the base is %s", name, base)
			}
		}
	})
}

func TestAPlainBaseOfASecretIsReplacedWhenFirstSeen(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("PlainSecrets %v", plain), func(t *testing.T) {
			secretive(t, func(t *testing.T, c *gopftest.Cluster) {
				const objects = 3
				for i := range objects {
					obj := secretObject(fmt.Sprintf("x%d", i), "c2VjcmV0")
					obj.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
					obj.SetAnnotations(map[string]string{annotated: `{"type":"Opaque","data":{"user":"YWRtaW4=","password":"c2VjcmV0"}}` + "\n"})
					c.Create(t, obj)
				}
				writes := len(c.Writes("secrets"))
				for run := range 2 {
					var diary calls
					var log lines
					op := watching(&diary, "")
					op.Settings.Persistence.PlainSecrets = plain
					stop := gopftest.Start(t, op, c, gopf.Log(log.logger()))
					time.Sleep(time.Minute)
					stop()
					if got := diary.all(); len(got) != 0 {
						t.Errorf("handlers were called: %q", got)
					}
					want := objects
					if plain || run == 1 {
						want = 0
					}
					if n := len(c.Writes("secrets")) - writes; n != want {
						t.Errorf("run %d: %d writes, want %d", run, n, want)
					}
					writes = len(c.Writes("secrets"))
					if n := log.count("plain values"); n != min(want, 1) {
						t.Errorf("run %d: %d lines about it", run, n)
					}
					for _, obj := range c.List(t, secrets, "default") {
						if got := strings.Contains(obj.GetAnnotations()[annotated], "c2VjcmV0"); got != plain {
							t.Errorf("run %d: the base is %s", run, obj.GetAnnotations()[annotated])
						}
					}
				}
			})
		})
	}
}

func TestANewSecretKeyCallsNoHandlerAndIsUsedByTheNextWrite(t *testing.T) {
	const one, two = "0123456789abcdef", "fedcba9876543210"
	secretive(t, func(t *testing.T, c *gopftest.Cluster) {
		base := func() string { return c.Get(t, secrets, "default", "x").GetAnnotations()[annotated] }
		run := func(key string, change func()) []string {
			var diary calls
			stop := gopftest.Start(t, watching(&diary, key), c, gopf.Log(quiet()))
			time.Sleep(time.Minute)
			change()
			time.Sleep(time.Minute)
			stop()
			return diary.all()
		}
		if got := run("", func() { c.Create(t, secretObject("x", "c2VjcmV0")) }); len(got) != 1 {
			t.Fatalf("created: %q", got)
		}
		for i, key := range []string{one, two, ""} {
			before, writes := base(), len(c.Writes("secrets"))
			if got := run(key, func() {}); len(got) != 0 || base() != before || len(c.Writes("secrets")) != writes {
				t.Errorf("key %d: calls %q, base %s", i, got, base())
			}
			label := fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, i)
			got := run(key, func() { c.Patch(t, secrets, "default", "x", label) })
			if len(got) != 1 || strings.Contains(got[0], "data.password") {
				t.Errorf("key %d: calls after another change: %q", i, got)
			}
			if base() == before || strings.Count(base(), "hmac-sha256:") != 2 {
				t.Errorf("key %d: it is not used for the digests: %s", i, base())
			}
			password := fmt.Sprintf(`{"data":{"password":"c2VjcmV%d"}}`, i+1)
			if got := run(key, func() { c.Patch(t, secrets, "default", "x", password) }); len(got) != 2 {
				t.Errorf("key %d: a change of the value called %q", i, got)
			}
		}
	})
}
