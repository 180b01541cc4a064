package insight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// applied returns an object as the API server would store it if a manifest replaced its
// fields: a dry run, with defaults, validation and admission. The metadata and the status
// stay, except that the labels and annotations of the manifest are added.
func (p *planner) applied(ctx context.Context, manifest *object.Body) (served discovery.Served, body *object.Body, err error) {
	fields := manifest.Map()
	apiVersion, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	at := slices.IndexFunc(p.served, func(s discovery.Served) bool { return s.Info.Kind == kind && s.Info.APIVersion() == apiVersion })
	if at < 0 {
		return served, nil, fmt.Errorf("the operator does not serve %s of %s", kind, apiVersion)
	}
	served = p.served[at]
	if manifest.Name == "" {
		return served, nil, fmt.Errorf("a manifest of %s has no name", kind)
	}
	t := p.target(served, Name{Name: manifest.Name, Namespace: manifest.Namespace})
	live, err := p.client.Get(ctx, t)
	if apierrors.IsNotFound(err) {
		raw, err := json.Marshal(fields)
		if err != nil {
			return served, nil, err
		}
		collection := kube.Target{Info: t.Info, Namespace: t.Namespace}
		body, err = p.client.Create(ctx, collection, raw)
		return served, body, describe(err, "create", kind, manifest.Name)
	}
	if err != nil {
		return served, nil, err
	}
	raw, err := json.Marshal(replacement(live.Map(), fields))
	if err != nil {
		return served, nil, err
	}
	body, err = p.client.Patch(ctx, t, types.JSONPatchType, raw)
	return served, body, describe(err, "change", kind, manifest.Name)
}

func describe(err error, verb, kind, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s in a dry run: %w", verb, kind, name, err)
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// replacement returns the JSON patch that replaces the fields of a live object by those of
// a manifest.
func replacement(live, manifest map[string]any) []operation {
	ops := []operation{}
	server := func(key string) bool {
		return slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key)
	}
	for key, value := range manifest {
		if !server(key) && value != nil {
			ops = append(ops, operation{"add", "/" + escape(key), value})
		}
	}
	for key := range live {
		if manifest[key] == nil && !server(key) {
			ops = append(ops, operation{Op: "remove", Path: "/" + escape(key)})
		}
	}
	before, _ := live["metadata"].(map[string]any)
	after, _ := manifest["metadata"].(map[string]any)
	for _, part := range []string{"labels", "annotations"} {
		values, _ := after[part].(map[string]any)
		if len(values) == 0 {
			continue
		}
		if _, has := before[part].(map[string]any); !has {
			ops = append(ops, operation{"add", "/metadata/" + part, map[string]any{}})
		}
		for key, value := range values {
			ops = append(ops, operation{"add", "/metadata/" + part + "/" + escape(key), value})
		}
	}
	slices.SortStableFunc(ops, func(a, b operation) int { return compare(a.Path, b.Path) })
	return ops
}

// escape escapes a key for a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
