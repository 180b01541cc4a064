package gopf_test

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"gopf.dev/gopf"
)

// The user who creates or changes an invalid shop sees the reason of the denial. In
// development (gopf dev, --dev), the operator starts a local webhook server. In
// production, set Settings.Admission.Server to one of package webhook.
func ExampleResource_Validate() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.Validate("town", func(_ context.Context, r *gopf.Review[*Shop]) error {
		if r.Object.Spec.Town == "" {
			return gopf.Deny("a shop must be somewhere: set spec.town")
		}
		if len(r.Object.Spec.Goods) == 0 {
			r.AddWarning("the shop %s has nothing to sell", r.Object.Name)
		}
		return nil
	}, gopf.Operations(admissionv1.Create, admissionv1.Update))
}

// The API server stores the patched object, as if the user had written it.
func ExampleResource_Mutate() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.Mutate("capitals", func(_ context.Context, r *gopf.Review[*Shop]) error {
		r.Patch.Set("spec.town", strings.ToUpper(r.Object.Spec.Town))
		return nil
	})
}
