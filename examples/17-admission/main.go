// Command 17-admission is asked by the cluster before requests are granted: it
// refuses some, warns of others, and fills in what is missing.
package main

import (
	"context"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/webhook"
)

func main() {
	op := gopf.New()

	// Where the cluster reaches the operator. Auto is for clusters on this machine.
	// In a pod, it is webhook.Service{Name: "myoperator"}; for a remote cluster, a
	// tunnel. See docs/admission.md for all of them.
	op.Settings.Admission.Server = webhook.Auto{}
	// The operator tells the cluster about itself, and takes it back at its end.
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

// create is here to show that reviews and other handlers go well together.
func create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.SetResult(map[string]string{"message": "hello world"})
	return nil
}

// show logs who wants what, and warns. Whoever uses kubectl sees the warnings.
func show(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	r.Log.Info("Somebody wants something.", "operation", r.Operation, "user", r.User.Username,
		"dryRun", r.DryRun, "changes", len(r.Diff), "agent", r.Header.Get("User-Agent"), "certificate", r.Client != nil)
	if r.Operation == gopf.OperationCreate {
		r.Warn("%s is only an example", r.Object.GetName())
	}
	return nil
}

// refuse is asked only about objects with the unwanted value.
func refuse(context.Context, *gopf.Review[gopf.Unstructured]) error {
	return &gopf.AdmissionError{Message: "this value is not allowed", Code: 555}
}

// parts is asked about the status, too. It must not do anything in dry runs.
func parts(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	if !r.DryRun {
		r.Log.Info("A part is going to be written.", "subresource", r.Subresource)
	}
	return nil
}

// defaults fills in what is missing, and puts right what is too much.
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
