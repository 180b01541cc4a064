package vectors_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// fakeAPI is a cluster of one object that takes patches.
type fakeAPI struct {
	t        *testing.T
	object   map[string]any
	recorded transcript
	limit    int // of states, after which the operator is stopped; 0 for none
	stopped  func()
}

func (f *fakeAPI) Get(context.Context, kube.Target) (*object.Body, error) {
	return object.FromMap(jsonvalue.Clone(f.object).(map[string]any))
}

func (f *fakeAPI) Patch(_ context.Context, target kube.Target, how types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	before := settled(f.object)
	after := jsonvalue.Clone(f.object).(map[string]any)
	metadata := stringMap(after["metadata"])
	switch how {
	case types.MergePatchType:
		fields := decode[map[string]any](f.t, raw)
		if _, has := fields["status"]; has && target.Subresource != "status" && target.Info.HasStatus() {
			f.t.Errorf("the status is sent to the main endpoint: %s", raw)
		}
		patch.Apply(after, fields)
	case types.JSONPatchType:
		var ops []patch.Op
		if err := json.Unmarshal(raw, &ops); err != nil {
			f.t.Fatal(err)
		}
		if ops[0].Op != "test" || ops[0].Value != metadata["resourceVersion"] {
			return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "KopfExample"}, target.Name, nil)
		}
		body, _ := object.FromMap(after)
		after = patched(f.t, body, ops)
	}
	if !diff.Equal(before, settled(after)) {
		version, _ := strconv.Atoi(stringMap(f.object["metadata"])["resourceVersion"].(string))
		stringMap(after["metadata"])["resourceVersion"] = strconv.Itoa(version + 1)
		f.recorded.states = append(f.recorded.states, moment{time.Since(epoch).Seconds(), settled(after)})
		if len(f.recorded.states) == f.limit {
			f.stopped()
		}
	}
	f.object = after
	return f.Get(context.Background(), target)
}
