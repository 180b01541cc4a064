package discovery

import (
	"strings"
	"testing"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

var all = []string{"list", "watch", "patch"}

func info(group, version, plural string) kind.Info {
	return kind.Info{Group: group, Version: version, Plural: plural, Kind: plural, Preferred: version == "v1", Namespaced: true, Verbs: all}
}

func newHandler(id, resource string) *handler.Handler {
	of, err := kind.Parse(resource)
	if err != nil {
		panic(err)
	}
	return &handler.Handler{ID: id, Of: of, Where: "main.go:1", Reasons: map[cause.Reason]bool{cause.Create: true}}
}

func TestHandlersAreAssignedToTheirResources(t *testing.T) {
	cluster := []kind.Info{
		info("", "v1", "pods"), info("metrics.k8s.io", "v1", "pods"),
		info("a.dev", "v1", "things"), info("b.dev", "v1", "things"),
		{Group: "c.dev", Version: "v1", Plural: "readonly", Preferred: true, Verbs: []string{"list", "watch"}},
	}
	events := newHandler("look", "readonly")
	events.Family = handler.Events
	plan := Match(handler.Set{
		newHandler("a", "pods"), newHandler("b", "pods"),
		newHandler("ambiguous", "things"), newHandler("clear", "a.dev/things"),
		newHandler("missing", "nothings"), newHandler("writing", "readonly"), events,
	}, cluster)
	if got := len(plan.Kinds[cluster[0].GVR()].Handlers); got != 2 {
		t.Errorf("pods of the core group have %d handlers, want 2", got)
	}
	if _, served := plan.Kinds[cluster[1].GVR()]; served {
		t.Error("pods of another group have handlers")
	}
	if got := len(plan.Kinds[cluster[2].GVR()].Handlers); got != 1 {
		t.Errorf("an ambiguous selector affects an unambiguous one: %d handlers", got)
	}
	if got := plan.Kinds[cluster[4].GVR()].Handlers; len(got) != 1 || got[0].ID != "look" {
		t.Errorf("a read-only resource has %d handlers, want the one that only reads", len(got))
	}
	problems := strings.Join(plan.Problems, "\n")
	for _, words := range []string{
		`handler "ambiguous" (main.go:1): "things" is ambiguous: things.v1.a.dev, things.v1.b.dev`,
		`the cluster does not have the resource "nothings"`,
		`handler "writing" (main.go:1): readonly.v1.c.dev does not support the verb patch`,
	} {
		if !strings.Contains(problems, words) {
			t.Errorf("the problems do not contain %q:\n%s", words, problems)
		}
	}
	if plan.Conflict != nil {
		t.Error(plan.Conflict)
	}
}

func TestTheSameIDThroughDifferentSelectorsIsNoProblem(t *testing.T) {
	pods := info("", "v1", "pods")
	for family, served := range map[handler.Family]int{handler.Changes: 2, handler.Events: 2, handler.Background: 1, handler.Indexing: 1} {
		a, b := newHandler("a", "pods"), newHandler("a", "v1/pods")
		a.Family, b.Family = family, family
		plan := Match(handler.Set{a, b}, []kind.Info{pods})
		if len(plan.Problems) > 0 || len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "same id") {
			t.Errorf("family %d: problems %q, notes %q", family, plan.Problems, plan.Notes)
		}
		if got := plan.Kinds[pods.GVR()].Handlers; len(got) != served || got[0] != a {
			t.Errorf("family %d: %d handlers are served, want %d", family, len(got), served)
		}
	}
}

func TestTwoVersionsOfOneKindConflict(t *testing.T) {
	cluster := []kind.Info{info("a.dev", "v1", "things"), info("a.dev", "v1beta1", "things")}
	plan := Match(handler.Set{newHandler("a", "a.dev/v1/things"), newHandler("b", "a.dev/v1beta1/things")}, cluster)
	if plan.Conflict == nil || !strings.Contains(plan.Conflict.Error(), "two versions") {
		t.Errorf("got %v", plan.Conflict)
	}
	look := newHandler("b", "a.dev/v1beta1/things")
	look.Family = handler.Events
	if plan := Match(handler.Set{newHandler("a", "a.dev/v1/things"), look}, cluster); plan.Conflict != nil {
		t.Errorf("reading another version is a conflict: %v", plan.Conflict)
	}
}

// Discovery returns only these verbs for a CRD that is being deleted.
func TestAResourceIsServedWhileItsDefinitionIsBeingDeleted(t *testing.T) {
	things := info("a.dev", "v1", "things")
	things.Verbs = []string{"delete", "deletecollection", "get", "list", "watch"}
	plan := Match(handler.Set{newHandler("a", "things")}, []kind.Info{things})
	if len(plan.Kinds) != 1 || len(plan.Problems) > 0 {
		t.Errorf("got %v, problems %q", plan.Kinds, plan.Problems)
	}
}
