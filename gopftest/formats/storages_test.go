package formats_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/storage"
)

// secret is a handler of Secrets that is late for so many times.
func secret(d *diary, id string, times int) gopf.ChangeFunc[*corev1.Secret] {
	return func(_ context.Context, ch *gopf.Change[*corev1.Secret]) error {
		d.add("%s %s %d #%d", id, ch.Reason, len(ch.Diff), ch.Retry)
		d.noteKey(id, ch.Key(), ch.Retry >= times)
		if ch.Retry < times {
			return gopf.Wait(delay, "not yet")
		}
		return nil
	}
}

func secrets() []situation {
	declare := func(op *gopf.Operator, d *diary, _ bool) {
		x := gopf.For[*corev1.Secret](op, "v1/secrets")
		x.OnCreate("create_a", secret(d, "create_a", 0))
		x.OnUpdate("update_a", secret(d, "update_a", 0))
		x.OnUpdate("update_b", secret(d, "update_b", 1))
	}
	create := func(_ *testing.T, st *stage) {
		st.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
			"metadata": map[string]any{"name": "x", "namespace": "default"},
			"data":     map[string]any{"user": "YWRtaW4=", "password": "c2VjcmV0"},
		}})
	}
	update := func(t *testing.T, st *stage) {
		create(t, st)
		st.cluster.Patch(t, "v1/secrets", "default", "x", `{"data":{"password":"b3RoZXI="}}`)
		st.settle()
	}
	return []situation{
		{name: "secret-handled", named: "v1/secrets", declare: declare, drive: create},
		{name: "secret-half", named: "v1/secrets", declare: declare, drive: update, then: []string{"update_b update 1 #1"}},
		{name: "secret-plain-handled", named: "v1/secrets", declare: func(op *gopf.Operator, d *diary, restarted bool) {
			op.Settings.Persistence.PlainSecrets = true
			declare(op, d, restarted)
		}, drive: create},
	}
}

// replicaSets are situations with keys of their own: the Deployment's annotations
// are copied to its ReplicaSets.
func replicaSets() []situation {
	const resource = "apps/v1/replicasets"
	late := func(d *diary, id string, times int) gopf.ChangeFunc[*appsv1.ReplicaSet] {
		return func(_ context.Context, ch *gopf.Change[*appsv1.ReplicaSet]) error {
			d.add("%s %s #%d", id, ch.Reason, ch.Retry)
			d.noteKey(id, ch.Key(), ch.Retry >= times)
			if ch.Retry < times {
				return gopf.Wait(delay, "not yet")
			}
			return nil
		}
	}
	create := func(_ *testing.T, st *stage) {
		st.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet",
			"metadata": map[string]any{
				"name": "x", "namespace": "default",
				"annotations": map[string]any{
					"kopf.zalando.org/last-handled-configuration": `{"spec":{"of":"the Deployment"}}`,
					"kopf.zalando.org/create_b":                   `{"purpose":"create","retries":7,"success":true,"failure":false}`,
				},
				"ownerReferences": []any{map[string]any{
					"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "0f3c2b1a-0000-4000-8000-000000000001", "controller": true,
				}},
			},
			"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "x"}}},
		}})
	}
	return []situation{{
		name: "replicaset-half", named: resource,
		declare: func(op *gopf.Operator, d *diary, _ bool) {
			x := gopf.For[*appsv1.ReplicaSet](op, resource)
			x.OnCreate("create_a", late(d, "create_a", 0))
			x.OnCreate("create_b", late(d, "create_b", 1))
		},
		drive: create, then: []string{"create_b create #1"}, foreign: "kopf.zalando.org/create_b",
	}, {
		name: "replicaset-handled", named: resource,
		declare: func(op *gopf.Operator, d *diary, _ bool) {
			x := gopf.For[*appsv1.ReplicaSet](op, resource)
			x.OnCreate("create_a", late(d, "create_a", 0))
			x.OnUpdate("update_a", late(d, "update_a", 0))
		},
		drive: create, foreign: "kopf.zalando.org/create_b",
	}}
}

func sizesOfBases() []situation {
	return []situation{{
		name:    "base-compressed",
		declare: examples(everything), drive: created("a", map[string]any{"large": strings.Repeat(padding, 230)}),
	}, {
		name:    "base-digest",
		declare: examples(everything), drive: created("a", map[string]any{"large": noise(300_000)}),
	}, {
		name: "base-compressed-half",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnUpdate("update_a", d.done("update_a"))
			x.OnUpdate("update_b", d.late("update_b", 1))
		}),
		drive: updated("a", "b", map[string]any{"large": strings.Repeat(padding, 230)}),
		then:  []string{"update_b update a->b #1"},
	}}
}

// storages are situations with other storages than the default ones: both halves
// of an update, and an update that is handled.
func storages() []situation {
	kinds := []struct {
		name     string
		progress func() storage.Progress
		base     func() storage.Base
	}{
		{
			"status",
			func() storage.Progress { return storage.NewStatusProgress("op") },
			func() storage.Base { return storage.NewStatusBase("op") },
		},
		{
			"prefix",
			func() storage.Progress { return storage.NewAnnotationProgress("op.example.com") },
			func() storage.Base { return storage.NewAnnotationBase("op.example.com") },
		},
		{
			"multi",
			func() storage.Progress {
				return storage.MultiProgress(storage.NewStatusProgress("op"), storage.NewAnnotationProgress("op.example.com"))
			},
			func() storage.Base {
				return storage.MultiBase(storage.NewAnnotationBase("op.example.com"), storage.NewStatusBase("op"))
			},
		},
	}
	var all []situation
	for _, k := range kinds {
		declare := func(op *gopf.Operator, d *diary, _ bool) {
			op.Settings.Persistence.Progress, op.Settings.Persistence.Base = k.progress(), k.base()
			op.Settings.Persistence.Finalizer = "op.example.com/finalizer"
			x := gopf.For[*Example](op, resource)
			halves(x, d)
			x.OnUpdate("update_a", withResult(d.done("update_a")))
			x.OnUpdate("update_b", d.late("update_b", 1))
			x.OnDelete("delete_a", d.done("delete_a"))
		}
		later := func(t *testing.T, st *stage) {
			created("a")(t, st)
			time.Sleep(2 * delay)
			st.settle()
		}
		all = append(all,
			situation{
				name: fmt.Sprintf("storage-%s-half", k.name), declare: declare, drive: created("a"),
				then: []string{"create_b create ->a #1"}, base: "a",
			},
			situation{
				name: fmt.Sprintf("storage-%s-update-half", k.name), declare: declare,
				drive: func(t *testing.T, st *stage) {
					later(t, st)
					st.set(map[string]any{"field": "b"})
				},
				then: []string{"update_b update a->b #1"}, base: "b",
			},
			situation{name: fmt.Sprintf("storage-%s-handled", k.name), declare: declare, drive: later, base: "a"},
			situation{
				name: fmt.Sprintf("storage-%s-half-without-status-subresource", k.name), kind: withoutStatus(), declare: declare, drive: created("a"),
				then: []string{"create_b create ->a #1"}, base: "a",
			},
		)
	}
	return append(all, situation{
		name: "storage-moved", // from the status to the default storages
		declare: func(op *gopf.Operator, d *diary, restarted bool) {
			op.Settings.Persistence.Progress = storage.NewStatusProgress(storage.DefaultName)
			if restarted {
				op.Settings.Persistence.Progress = storage.DefaultProgress()
			}
			halves(gopf.For[*Example](op, resource), d)
		},
		drive: created("a"), writes: 1,
		then: []string{"create_b create ->a #1"}, base: "a",
	})
}
