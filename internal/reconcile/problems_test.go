package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// refusing is an API server without objects. It refuses each write with a long text.
type refusing struct{ empty }

func (r *refusing) Patch(_ context.Context, t kube.Target, _ types.PatchType, _ []byte, _ ...kube.Param) (*object.Body, error) {
	return nil, apierrors.NewBadRequest(t.Name + " is refused" + strings.Repeat(".", 10_000))
}

// A tenant can let all children of its object fail, and choose the texts of the errors.
func TestOnlyTheFirstProblemsOfManyChildrenAreKept(t *testing.T) {
	runner := &reconcile.Runner{Objects: &apiclient.Objects{API: &refusing{}, Known: func() []kind.Info { return []kind.Info{widgets} }}, Name: "me",
		Store: childwatch.NewStore("me", func() uint64 { return 1 })}
	for _, c := range []struct {
		wanted, kept int
		last         string
	}{
		{0, 0, ""},
		{20, 20, "w19 is refused"},
		{100, 20, "there are 80 more problems"},
	} {
		task := reconcile.Task{
			Owner:     reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}},
			Inventory: &children.Inventory{}, Fights: &reconcile.Fights{}, Log: slog.New(slog.DiscardHandler), Prune: true, Alone: true,
		}
		for i := range c.wanted {
			w := &handler.Wanted{Info: widgets, Fields: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprint("w", i)}}}
			w.APIVersion, w.Kind, w.Namespace, w.Name = "example.com/v1", "Widget", "default", fmt.Sprint("w", i)
			task.Wanted = append(task.Wanted, w)
		}
		result, err := runner.Run(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		problem := result.Err()
		if c.wanted == 0 {
			if problem != nil {
				t.Errorf("without children, got %v", problem)
			}
			continue
		}
		if len(result.Problems) != c.kept || result.Others != c.wanted-c.kept || result.Problems[0].Reason != "ApplyFailed" || !apierrors.IsBadRequest(problem) {
			t.Fatalf("of %d problems, %d were kept and %d others counted", c.wanted, len(result.Problems), result.Others)
		}
		lines := strings.Split(problem.Error(), "\n")
		if !strings.Contains(lines[0], "w0 is refused") || !strings.Contains(lines[len(lines)-1], c.last) {
			t.Errorf("of %d problems, the error has %d lines", c.wanted, len(lines))
		}
	}
}

// The name of a child may come from its owner. A text of any length must not get into the
// inventory, whose other children are then applied as usual.
func TestAChildWithALongNameIsRefusedBeforeItIsNoted(t *testing.T) {
	runner := &reconcile.Runner{Objects: &apiclient.Objects{API: &refusing{}, Known: func() []kind.Info { return []kind.Info{widgets} }}, Name: "me",
		Store: childwatch.NewStore("me", func() uint64 { return 1 })}
	var planned []children.Entry
	task := reconcile.Task{
		Owner:     reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}},
		Inventory: &children.Inventory{}, Fights: &reconcile.Fights{}, Log: slog.New(slog.DiscardHandler), Prune: true, Alone: true,
		Guard: func(_ context.Context, v *children.Inventory) error { planned = v.Entries; return nil },
	}
	for _, name := range []string{strings.Repeat("n", 100_000), "w"} {
		w := &handler.Wanted{Info: widgets, Fields: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
		w.APIVersion, w.Kind, w.Namespace, w.Name = "example.com/v1", "Widget", "elsewhere", name
		task.Wanted = append(task.Wanted, w)
	}
	result, err := runner.Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	if len(planned) != 1 || planned[0].Name != "w" {
		t.Errorf("%d children were noted", len(planned))
	}
	if len(result.Problems) != 2 || len(result.Problems[0].Err.Error()) > 200 || !strings.Contains(result.Problems[0].Err.Error(), "the limit of 253") {
		t.Errorf("the problems are %.300v", result.Err())
	}
}
