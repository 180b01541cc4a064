package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// apply puts manifests of an example into the cluster.
func apply(t *testing.T, paths ...string) {
	t.Helper()
	objects, err := manifests.Read(paths...)
	if err == nil {
		err = manifests.Apply(t.Context(), cluster, objects, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// field is a text somewhere in an object; "" if it is not there.
func field(o *unstructured.Unstructured, path ...string) string {
	if o == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

func TestTheTutorial(t *testing.T) {
	t.Parallel()
	const folder = "../../../examples/tutorial-evc"
	apply(t, folder+"/deploy/crd.yaml", folder+"/storage.yaml")
	ns := namespace(t)
	evcs := objects{t, ns, "EphemeralVolumeClaim", schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "ephemeralvolumeclaims"}}
	pvcs := objects{t, ns, "PersistentVolumeClaim", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}}
	p := start(t, build(t, folder), nil, "run", "--namespace", ns, "--standalone", "--verbose")

	// Creating.
	manifest, err := manifests.Read(folder + "/evc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	evcs.create("my-claim", manifest[0].Object)
	kit.Await(t, "the PVC is bound", func() bool { return field(pvcs.get("my-claim"), "status", "phase") == "Bound" })
	kit.Await(t, "the status names it", func() bool { return field(evcs.get("my-claim"), "status", "claim") == "my-claim" })

	// Updating.
	size := func() string { return field(pvcs.get("my-claim"), "spec", "resources", "requests", "storage") }
	if got := size(); got != "1Gi" {
		t.Errorf("the size is %s", got)
	}
	evcs.merge("my-claim", `{"spec": {"size": "2Gi"}}`)
	kit.Await(t, "the PVC is resized", func() bool { return size() == "2Gi" })

	// Diffing: labels come and go, and those of others stay.
	labels := func(wanted string) func() bool {
		return func() bool {
			got := pvcs.get("my-claim").GetLabels()
			return got["application"]+","+got["owner"]+","+got["theirs"] == wanted
		}
	}
	pvcs.merge("my-claim", `{"metadata": {"labels": {"theirs": "stays"}}}`)
	evcs.merge("my-claim", `{"metadata": {"labels": {"application": "some-app", "owner": "me"}}}`)
	kit.Await(t, "the PVC is labelled", labels("some-app,me,stays"))
	evcs.merge("my-claim", `{"metadata": {"labels": {"application": "other-app", "owner": null}}}`)
	kit.Await(t, "the PVC is relabelled", labels("other-app,,stays"))
	evcs.merge("my-claim", `{"metadata": {"labels": null}}`)
	kit.Await(t, "the PVC is without these labels", labels(",,stays"))

	// A wrong size fails for good.
	evcs.create("wrong", map[string]any{"spec": map[string]any{"size": "huge"}})
	p.Log.WaitFor(t, "[ERROR", "/wrong] Handler 'claim' failed permanently: spec.size \"huge\"")
	if pvcs.get("wrong") != nil {
		t.Error("there is a PVC of a wrong size")
	}

	// Cascaded deletion.
	evcs.delete("my-claim")
	pvcs.awaitCollected("my-claim")
	p.end(t)
	if lines := p.Log.With("[ERROR"); len(lines) != 1 {
		t.Errorf("got %q", lines)
	}
}
