package gopftest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	admissionv1 "k8s.io/api/admission/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

func limitSize(_ context.Context, r *gopf.Review[*example]) error {
	switch {
	case r.Object.Spec.Size > 100:
		return gopf.Deny("%d is too much", r.Object.Spec.Size)
	case r.Operation == admissionv1.Update && r.Object.Spec.Size < r.Old.Spec.Size:
		r.AddWarning("smaller than before: %d", r.Old.Spec.Size)
	case r.Object.Spec.Size == 0:
		r.Patch.Set("spec.size", 1)
		r.Patch.Edit(func(e *example) { e.Spec.Name = r.User.Username })
	}
	return nil
}

func TestReviewReturnsTheArgumentOfAdmissionHandlers(t *testing.T) {
	c := gopftest.NewCluster(t, examples)

	defaulted := gopftest.Review(t, c, newExample("a", 0), gopftest.RequestedBy("jane"))
	if err := defaulted.Run(limitSize); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(exampleSpec{Size: 1, Name: "jane"}, defaulted.Mutated().Spec); diff != "" {
		t.Errorf("mutated: -want +got\n%s", diff)
	}

	smaller := gopftest.Review(t, c, newExample("a", 2), gopftest.Was(newExample("a", 3)))
	if err := limitSize(t.Context(), smaller.Review); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"smaller than before: 3"}, smaller.Warnings()); diff != "" {
		t.Errorf("warnings: -want +got\n%s", diff)
	}
	if len(smaller.Diff) != 1 || strings.Join(smaller.Diff[0].Path, ".") != "spec.size" {
		t.Errorf("diff: %v", smaller.Diff)
	}

	err := gopftest.Review(t, c, newExample("a", 200)).Run(limitSize)
	if denied, ok := errors.AsType[*gopf.AdmissionError](err); !ok || denied.Code != 403 || denied.Message != "200 is too much" {
		t.Errorf("got %v", err)
	}
	if _, exists := c.Lookup(t, examples, "default", "a"); exists {
		t.Error("a review stored its object")
	}
}

func TestHandlersReachTheClusterInTests(t *testing.T) {
	c := gopftest.NewCluster(t, examples)
	call := gopftest.Change(t, c, newExample("parent", 1))
	err := call.Run(func(ctx context.Context, ch *gopf.Change[*example]) error {
		child := newExample("child", 2)
		if err := ch.Adopt(child); err != nil {
			return err
		}
		if err := ch.API.Create(ctx, child); err != nil {
			return err
		}
		ch.API.Event(client.About(child), client.Normal, "Born", "a child")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	child := gopftest.Get[*example](t, c, examples, "default", "child")
	if len(child.OwnerReferences) != 1 || child.OwnerReferences[0].Name != "parent" {
		t.Errorf("owners: %v", child.OwnerReferences)
	}
}
