package gopf_test

import (
	"context"
	"strings"

	"gopf.dev/gopf"
)

// Whoever creates or changes a shop is told what is wrong with it. In development
// (gopf dev, --dev) a local server is there by itself; in production, set one of
// package webhook in Settings.Admission.
func ExampleResource_Validate() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.Validate("town", func(_ context.Context, r *gopf.Review[*Shop]) error {
		if r.Object.Spec.Town == "" {
			return gopf.Deny("a shop must be somewhere: set spec.town")
		}
		if len(r.Object.Spec.Goods) == 0 {
			r.Warn("the shop %s has nothing to sell", r.Object.Name)
		}
		return nil
	}, gopf.Operations(gopf.OperationCreate, gopf.OperationUpdate))
}

// What is patched is stored as if the user had written it.
func ExampleResource_Mutate() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.Mutate("capitals", func(_ context.Context, r *gopf.Review[*Shop]) error {
		r.Patch.Set("spec.town", strings.ToUpper(r.Object.Spec.Town))
		return nil
	})
}
