package childwatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/kind"
)

// marked is a child with all that the operator reads. The gaps are irrelevant to JSON, but
// a stamp must not change with the code that computes it: stamps are stored.
const marked = `{"kind": "Thing", "metadata": {
	"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "7", "generation": 3, "labels": null,
	"annotations": {"gopf.dev/applied": "0123abcd", "gopf.dev/owner": "v1|Thing|ns|x|u9", "other": "\u0041"},
	"finalizers": ["example.com/x", "example.com/y"],
	"ownerReferences": [{"uid": "noise", "controller": false}, {"controller": true, "uid": "u0"}],
	"managedFields": [
		{"manager": "another", "operation": "Update", "fieldsV1": {"f:spec": {}}},
		{"fieldsV1": {"f:metadata": {"f:labels": {}}, "f:data":{"f:\u0041":{}}}, "time": "2026-01-01T00:00:00Z", "manager": "op", "operation": "Apply"},
		{"manager": "op", "operation": "Update", "subresource": "status", "fieldsV1": {}},
		{"manager": "op", "operation": "Update"}
	]}, "spec": {"replicas": 1}, "status": {"observedGeneration": 2}}`

func TestAChildIsReadAsPackageJSONReadsIt(t *testing.T) {
	body, err := object.ParseWhole([]byte(marked))
	if err != nil {
		t.Fatal(err)
	}
	got, err := store().Read(kind.Info{Version: "v1", Kind: "Thing"}, body)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Metadata struct{ ManagedFields []children.ManagedFields }
	}
	if err := json.Unmarshal([]byte(marked), &whole); err != nil {
		t.Fatal(err)
	}
	if stamp, _ := children.Stamp(whole.Metadata.ManagedFields, "op"); got.Stamp != stamp || !got.Applied {
		t.Errorf("the stamp is %d, want %d", got.Stamp, stamp)
	}
	if got.Controller != "u0" || got.Owner != "u0" || got.Digest != "0123abcd" || !got.Finalized || got.Deleting || got.Orphan {
		t.Errorf("got %+v", got)
	}
	if want := (readiness.Verdict{State: readiness.InProgress, Message: "generation 3 is not observed yet"}); got.Readiness != want {
		t.Errorf("the readiness is %v, want %v", got.Readiness, want)
	}
	if raw := string(got.Body().Raw()); strings.Contains(raw, "managedFields") || !json.Valid([]byte(raw)) || !strings.HasPrefix(raw, `{"apiVersion":"v1",`) {
		t.Errorf("the child is kept as %s", raw)
	}
	if v, _ := got.Body().Lookup("status", "observedGeneration"); v != int64(2) {
		t.Errorf("the observed generation is %v", v)
	}
}

func TestReadinessNeedsNoWholeChild(t *testing.T) {
	for name, c := range map[string]struct{ apiVersion, kind, rest string }{
		"a config map":              {"v1", "ConfigMap", `"data": {"a": "b"}`},
		"a claim that is not bound": {"v1", "PersistentVolumeClaim", `"spec": {}`},
		"a bound claim":             {"v1", "PersistentVolumeClaim", `"status": {"phase": "Bound"}`},
		"a deployment":              {"apps/v1", "Deployment", `"spec": {"replicas": 3}, "status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 2}`},
		"a stalled object":          {"example.com/v1", "Thing", `"status": {"conditions": [{"type": "Stalled", "status": "True", "message": "no"}]}`},
		"a load balancer":           {"v1", "Service", `"spec": {"type": "LoadBalancer"}`},
	} {
		for _, deletion := range []string{"", `, "deletionTimestamp": "2026-01-01T00:00:00Z"`} {
			group, version, found := strings.Cut(c.apiVersion, "/")
			if !found {
				group, version = "", group
			}
			info := kind.Info{Group: group, Version: version, Kind: c.kind}
			body, err := object.ParseWhole(fmt.Appendf(nil, `{"metadata": {"name": "a", "uid": "u", "generation": 1%s}, %s}`, deletion, c.rest))
			if err != nil {
				t.Fatal(err)
			}
			child, err := store().Read(info, body)
			if err != nil {
				t.Fatal(err)
			}
			if want := readiness.Of(child.Body().Map()); child.Readiness != want {
				t.Errorf("%s%s: got %v, want %v", name, deletion, child.Readiness, want)
			}
		}
	}
}

// At a start, all children are read. The limit has room for the race detector and for other
// versions of Go.
func TestChildrenWithoutAStatusAreReadWithFewAllocations(t *testing.T) {
	s := store()
	body, err := object.ParseWhole([]byte(`{"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"gopf.dev/children": "op"}, ` +
		`"managedFields": [{"manager": "op", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {}}}]}, "data": {"a": "b"}}`))
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		if _, err := s.Read(configs, body); err != nil {
			t.Fatal(err)
		}
	})
	if n > 22 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkRead(b *testing.B) {
	s := store()
	body, err := object.ParseWhole([]byte(marked))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Read(configs, body); err != nil {
			b.Fatal(err)
		}
	}
}
