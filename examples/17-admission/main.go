// Command 17-admission has validating and mutating admission webhooks: it denies some
// requests, returns warnings for others, and sets defaults.
package main

import (
	"context"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/webhook"
)

func main() {
	op := gopf.New()

	// The server that the API server calls. Auto is for clusters on this machine.
	// In a pod, use webhook.Service{Name: "myoperator"}; for a remote cluster, a
	// tunnel. See docs/admission.md for all of them.
	op.Settings.Admission.Server = webhook.Auto{}
	// The operator maintains webhook configurations of this name, and removes them when
	// it stops.
	op.Settings.Admission.Managed = "auto.kopf.dev"

	x := op.Resource("kopfexamples")
	x.OnCreate("create_fn", create)
	x.Validate("show_what_is_known", show)
	x.Field("spec.field").Value(gopf.Is("not-allowed")).Validate("refuse", refuse)
	x.Validate("all_parts", parts, gopf.Subresource("*"), gopf.SideEffects())
	x.WithLabel("somelabel", gopf.Is("somevalue")).Mutate("defaults", defaults,
		gopf.Operations(gopf.OperationCreate, gopf.OperationUpdate))
	cli.Main(op)
}

// create shows that admission handlers and change handlers work together.
func create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.SetResult(map[string]string{"message": "hello world"})
	return nil
}

// show logs the request and returns a warning, which kubectl prints.
func show(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	r.Log.Info("Received an admission request.", "operation", r.Operation, "user", r.User.Username,
		"dryRun", r.DryRun, "changes", len(r.Diff), "agent", r.Header.Get("User-Agent"), "certificate", r.Client != nil)
	if r.Operation == gopf.OperationCreate {
		r.Warn("%s is only an example", r.Object.GetName())
	}
	return nil
}

// refuse is called only for objects with the unwanted value.
func refuse(context.Context, *gopf.Review[gopf.Unstructured]) error {
	return &gopf.AdmissionError{Message: "this value is not allowed", Code: 555}
}

// parts is also called for subresources such as the status. It must not have side
// effects in dry runs.
func parts(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	if !r.DryRun {
		r.Log.Info("A subresource will be written.", "subresource", r.Subresource)
	}
	return nil
}

// defaults sets missing values, and reduces values that are too large.
func defaults(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	copies, given := gopf.Field[int](r, "spec.copies")
	if !given {
		r.Patch.Set("spec.copies", 1)
	}
	if copies > 10 {
		r.Warn("10 copies are enough")
		r.Patch.Set("spec.copies", 10)
	}
	r.Patch.Annotate("kopf.dev/reviewed", "yes")
	return nil
}
