package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// shopsHaveBranchesWithDeployments runs the example for three levels.
func shopsHaveBranchesWithDeployments(t *testing.T, executable string) {
	apply(t, "../../../examples/19-levels/deploy/crd.yaml")
	ns := namespace(t)
	in := func(kind, group, plural string) objects {
		return objects{t, ns, kind, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}}
	}
	shops, branches, deployments := in("Shop", "gopf.dev", "shops"), in("Branch", "gopf.dev", "branches"), in("Deployment", "apps", "deployments")
	p := start(t, executable, nil, "run", "--namespace", ns, "--standalone", "--verbose")
	shops.create("books", map[string]any{"spec": map[string]any{"branches": []any{"berlin", "paris"}, "image": "nginx"}})
	for _, name := range []string{"books-berlin", "books-paris"} {
		kit.Await(t, "the branch has a Deployment", func() bool { return branches.get(name) != nil && deployments.get(name) != nil })
	}
	shops.merge("books", `{"spec": {"branches": ["paris"]}}`)
	kit.Await(t, "the branch is gone", func() bool { return branches.get("books-berlin") == nil })
	if branches.get("books-paris") == nil {
		t.Error("the other branch is gone as well")
	}
	shops.delete("books")
	deployments.awaitCollected("books-paris")
	p.end(t)
}

// teamsHaveContactsInTheirNamespaces runs the example for children in other namespaces.
func teamsHaveContactsInTheirNamespaces(t *testing.T, executable string) {
	apply(t, "../../../examples/20-other-namespaces/deploy/crd.yaml")
	ns, other := namespace(t), namespace(t)
	teams := objects{t, ns, "Team", schema.GroupVersionResource{Group: "gopf.dev", Version: "v1", Resource: "teams"}}
	contacts := objects{t, other, "ConfigMap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	p := start(t, executable, nil, "run", "--namespace", ns, "--standalone", "--verbose")
	teams.create("search", map[string]any{"spec": map[string]any{"contact": "a@example.com", "namespaces": []any{other}}})
	kit.Await(t, "the contact exists", func() bool { return field(contacts.get("team-search"), "data", "contact") == "a@example.com" })
	contacts.delete("team-search")
	kit.Await(t, "the contact is back", func() bool { return contacts.get("team-search") != nil })
	teams.delete("search")
	kit.Await(t, "the team is gone with its contact", func() bool { return teams.get("search") == nil && contacts.get("team-search") == nil })
	p.end(t)
}
