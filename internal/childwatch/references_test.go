package childwatch

import (
	"fmt"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/test/scaling"
	"gopf.dev/gopf/kind"
)

var secrets = kind.Info{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true, Preferred: true}

func referenced(t *testing.T, of kube.EventType, name, version, value string) stream.Event {
	t.Helper()
	body, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q,"uid":"uid-%s","resourceVersion":%q},"data":{"key":%q}}`, name, name, version, value))
	if err != nil {
		t.Fatal(err)
	}
	return stream.Event{Type: of, Body: body}
}

func TestReferencesWakeTheHandlersThatHaveThemAndNoOthers(t *testing.T) {
	t.Parallel()
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	var woken []string
	refs := NewReferences(func(owner, handler string) { woken = append(woken, owner+" "+handler) })
	to := func(names ...string) (all []Reference) {
		for _, n := range names {
			all = append(all, Reference{Of: of, Namespace: "a", Name: n})
		}
		return all
	}
	check := func(what string, want ...string) {
		t.Helper()
		slices.Sort(woken)
		if !slices.Equal(woken, want) {
			t.Errorf("%s wakes %q, want %q", what, woken, want)
		}
		woken = nil
	}
	refs.Set("x", "one", to("shared", "single"))
	refs.Set("x", "two", to("shared"))
	refs.Set("y", "one", to("shared"))
	refs.deliver(secrets, referenced(t, kube.Listed, "shared", "1", "v"), true)
	check("an item of the first list")
	refs.deliver(secrets, referenced(t, kube.Modified, "shared", "2", "v"), false)
	check("a change of nothing but the version")
	refs.deliver(secrets, referenced(t, kube.Modified, "shared", "3", "w"), false)
	check("a change", "x one", "x two", "y one")
	refs.deliver(kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}, referenced(t, kube.Added, "single", "4", "v"), false)
	check("an object of another kind")
	refs.Set("x", "one", to("single"))
	refs.deliver(secrets, referenced(t, kube.Deleted, "shared", "5", "w"), false)
	check("a deletion", "x two", "y one")
	refs.Drop("y")
	refs.Set("x", "one", nil)
	refs.Set("x", "two", nil)
	if len(refs.named) > 0 || len(refs.owners["y"]) > 0 {
		t.Errorf("names %v and owners %v are left", refs.named, refs.owners)
	}
}

// The names come from objects of tenants, and a watch waits for the same lock.
func TestTheTimeForReferencesIsProportionalToTheirNumber(t *testing.T) {
	t.Parallel()
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	scaling.Check(t, 2_000, func(n int) {
		refs := NewReferences(func(string, string) {})
		many := make([]Reference, n)
		for i := range many {
			many[i] = Reference{Of: of, Namespace: "a", Name: fmt.Sprint("secret-", i)}
		}
		for range 3 {
			refs.Set("x", "one", many)
		}
		refs.Drop("x")
		if len(refs.named)+len(refs.owners) > 0 {
			t.Errorf("%d names and %d owners are left", len(refs.named), len(refs.owners))
		}
	})
}
