package attacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/storage"
)

// forgery is forged state, together with a change of the spec.
type forgery struct {
	annotations fields
	called      bool // whether the handler of the update is called, if the state is stored
}

func forgeries() map[string]forgery {
	return map[string]forgery{
		"base-with-spec": {fields{lastHandled: `{"spec":{"field":"y"}}`}, false},
		"update-done":    {fields{prefix + "update": record("update", "")}, false},
		"delete-done":    {fields{prefix + "delete": record("delete", "")}, true},
		"year-9999":      {fields{prefix + "update": `{"started":"2026-01-01T00:00:00Z","purpose":"update","retries":1,"delayed":"9999-12-31T23:59:59Z"}`}, false},
		"foreign-base":   {fields{lastHandled: `{"spec":{"field":"of another tenant"}}`}, true},
		"garbage":        {fields{lastHandled: "{{{"}, false},
	}
}

// forgedState forges the state of objects that no policy protects. The operator
// behaves as the page on trust says.
func (s *scene) forgedState() []string {
	for _, resource := range []string{targets, plains} {
		for name, f := range forgeries() {
			s.attacker.Create(resource, name, fields{"spec": fields{"field": "x"}})
			s.attacker.await("handled", resource, name, handled)
			if name == "base-with-spec" {
				base := s.attacker.Get(resource, name).GetAnnotations()[lastHandled]
				f.annotations = fields{lastHandled: strings.Replace(base, `"field":"x"`, `"field":"y"`, 1)}
			}
			s.check(s.attacker.TryPatch(resource, name, fields{"metadata": fields{"annotations": f.annotations}, "spec": fields{"field": "y"}}))
		}
		for name, f := range forgeries() {
			switch {
			case name == "garbage": // it is created again
				s.attacker.await("created again", resource, name, func(o *unstructured.Unstructured) bool {
					field, _, _ := unstructured.NestedString(o.Object, "status", "create", "field")
					return field == "y"
				})
			case f.called:
				s.attacker.await("updated: "+name, resource, name, updated)
			}
		}
		for name, f := range forgeries() {
			if o := s.attacker.Get(resource, name); !f.called && o != nil && updated(o) {
				s.Errorf("%s: the handler was called", name)
			}
		}
	}
	return []string{"garbage"}
}

// reserve puts the policy into the cluster that reserves the operator's annotations on
// one of the resources.
func reserve(t *testing.T) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(cluster.Config)
	us, err := client.Resource(kit.GVR("authentication.k8s.io/v1/selfsubjectreviews")).Create(t.Context(),
		&unstructured.Unstructured{Object: fields{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	account, _, _ := unstructured.NestedString(us.Object, "status", "userInfo", "username")
	made, err := policy.Reservation{
		Name: "attacks-state", Account: account, Prefixes: []string{storage.DefaultPrefix}, Keys: []string{storage.DefaultName},
		Resources: []policy.Resource{{Group: "attacks.gopf.dev", Plural: "guardeds"}},
	}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range made {
		raw, _ := json.Marshal(o)
		body := map[string]any{}
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		plural := map[string]string{"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[body["kind"].(string)]
		all := client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural})
		if _, err := all.Create(context.Background(), &unstructured.Unstructured{Object: body}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := all.Delete(context.Background(), "attacks-state", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// refusedState tries to forge the state of objects that the policy protects.
func (s *scene) refusedState() []string {
	tries := map[string]fields{"note-bomb": {prefix + "gopf.handling": `{"message":"gz:` + bomb(27_000) + `"}`}, "base-bomb": {lastHandled: nil, lastHandled + "-gz": bomb(27_000)}}
	for name, f := range forgeries() {
		tries[name] = f.annotations
	}
	s.attacker.Create(guardeds, "guarded", fields{"spec": fields{"field": "x"}})
	s.attacker.await("handled", guardeds, "guarded", handled)
	kit.Eventually(s.T, func() error { // the policy takes a moment to count
		if err := s.attacker.annotate(guardeds, "guarded", fields{prefix + "probe": "x"}); !forbidden(err) {
			return fmt.Errorf("a tenant got %w", err)
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(tries)) {
		err := s.attacker.TryPatch(guardeds, "guarded", fields{"metadata": fields{"annotations": tries[name]}, "spec": fields{"field": "y"}})
		if !forbidden(err) || !strings.Contains(err.Error(), "attacks-state") {
			s.Errorf("%s: a tenant got %v", name, err)
		}
	}
	moment := time.Now().UTC().Format(time.RFC3339)
	record := fields{"started": moment, "stopped": moment, "purpose": "update", "retries": 1, "success": true, "failure": false}
	if err := s.attacker.TryPatch(guardeds, "guarded", fields{"status": fields{storage.DefaultName: fields{"progress": fields{"update": record}}}}, "status"); !forbidden(err) {
		s.Errorf("a record in the status: a tenant got %v", err)
	}
	s.check(s.attacker.TryPatch(guardeds, "guarded", fields{"spec": fields{"field": "y"}}))
	s.attacker.await("updated", guardeds, "guarded", updated)
	return nil
}
