package serve

import (
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/serve/spec"
)

// An evaluation may take tens of megabytes. Those of many objects must wait for each other, and
// objects of other namespaces must not wait for them.
func TestEvaluationsAreLimitedForEachNamespace(t *testing.T) {
	const children = "{id: a, reconcile: {owns: [v1/configmaps]}, children: [{id: c, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
	evaluations := func(s *share) **queue.Slots { return &s.evaluations }
	for name, c := range map[string]struct {
		handler string
		slots   func(*share) **queue.Slots
	}{
		"cel":       {`{id: a, on: [create], cel: '{"status": {"done": true}}'}`, evaluations},
		"template":  {`{id: a, on: [create], template: {status: {done: true}}}`, evaluations},
		"where":     {`{id: a, on: [create], where: {cel: 'object.metadata.name == "a"'}, exec: [echo, '{"status": {"done": true}}']}`, evaluations},
		"child":     {children + "}], status: {done: true}}", evaluations},
		"ready":     {children + ", readyWhen: 'self.metadata.name == \"c\"'}], status: {done: true}}", evaluations},
		"templates": {children + "}], status: {done: true}}", func(s *share) **queue.Slots { return &s.templates }},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"operator.yaml": {Data: []byte("apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: things}\nresources:\n" +
				"  - resource: example.com/v1/things\n    handlers:\n      - " + c.handler + "\n")}}
			parsed, problems := spec.Load(files, "operator.yaml")
			set, problems := build(parsed, problems, files, "operator.yaml", nil)
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				slots := queue.NewSlots(2)
				*c.slots(set.share) = slots
				op := gopf.New(gopf.Identity(parsed.Identity()))
				set.declare(op)
				cluster := gopftest.NewCluster(t, "example.com/v1/things", "v1/configmaps")
				gopftest.Start(t, op, cluster)
				release, _ := slots.Acquire("many", nil, nil)
				for _, namespace := range []string{"many", "other"} {
					cluster.CreateNamespace(t, namespace)
					cluster.Create(t, &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": namespace},
					}})
				}
				done := func(namespace string) bool {
					is, _, _ := unstructured.NestedBool(cluster.Get(t, "example.com/v1/things", namespace, "a").Object, "status", "done")
					return is
				}
				time.Sleep(30 * time.Second)
				if done("many") {
					t.Error("more evaluations than slots")
				}
				if !done("other") {
					t.Error("the other namespace waits")
				}
				release()
				time.Sleep(30 * time.Second)
				if !done("many") {
					t.Error("a slot is lost")
				}
			})
		})
	}
}

func TestOneNamespaceCannotHaveAllEvaluations(t *testing.T) {
	s := newShare()
	for _, slots := range []*queue.Slots{s.evaluations, s.reviews, s.templates, s.lists} {
		closed := make(chan struct{})
		close(closed)
		for {
			if _, ok := slots.Acquire("many", closed, nil); !ok {
				break
			}
		}
		if _, ok := slots.Acquire("other", closed, nil); !ok {
			t.Error("there is no slot for the other namespace")
		}
	}
}
