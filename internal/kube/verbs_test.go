package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestRequestsOfEachVerb(t *testing.T) {
	f := answers(ok(onePod))
	client, _ := f.client(t)
	ctx := t.Context()
	status := Target{Info: examples, Namespace: "ns", Name: "a", Subresource: "status"}
	steps := map[string]func() error{
		"GET /base/api/v1/namespaces/ns/pods/a ": func() error { _, err := client.Get(ctx, podA); return err },
		`POST /base/api/v1/namespaces/ns/pods {"x":1}`: func() error {
			_, err := client.Create(ctx, Target{Info: pods, Namespace: "ns"}, []byte(`{"x":1}`))
			return err
		},
		`PATCH /base/apis/kopf.dev/v1/namespaces/ns/kopfexamples/a/status?fieldManager=me&force=true {}`: func() error {
			_, err := client.Patch(ctx, status, types.ApplyPatchType, []byte(`{}`), FieldManager("me"), Force())
			return err
		},
		`PATCH /base/apis/kopf.dev/v1/namespaces/ns/kopfexamples/a/status?includeObject=None {}`: func() error {
			rv, err := client.PatchBriefly(ctx, status, types.MergePatchType, []byte(`{}`))
			if rv != "5" {
				t.Errorf("got the version %q", rv)
			}
			return err
		},
		`DELETE /base/api/v1/namespaces/ns/pods/a {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"1","resourceVersion":"5"},"propagationPolicy":"Foreground"}`: func() error {
			return client.Delete(ctx, podA, DeleteOptions{UID: "1", ResourceVersion: "5", Propagation: metav1.DeletePropagationForeground})
		},
	}
	for want, step := range steps {
		f.requests, f.bodies = nil, nil
		if err := step(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		got := f.requests[0][len(f.times()[0])+1:] + " " + f.bodies[0]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}
