// Command 17-admission has validating and mutating admission webhooks: it denies some
// requests, returns warnings for others, and sets defaults.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admission/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/webhook"
)

func main() {
	op := gopf.New()

	// The server that the API server calls. The environment variable WEBHOOK selects
	// one; the default detects the kind of the local cluster.
	op.Settings.Admission.Server = servers()[cmp.Or(os.Getenv("WEBHOOK"), "auto")]
	// The operator maintains webhook configurations of this name, and removes them when
	// it stops.
	op.Settings.Admission.Managed = "auto.kopf.dev"

	x := op.Resource("kopfexamples")
	x.OnCreate("create_fn", create)
	x.Validate("show_what_is_known", show)
	x.Validate("refuse_wrong", refuseWrong)
	x.Field("spec.field").Value(gopf.Is("not-allowed")).Validate("refuse", refuse)
	x.Validate("all_parts", parts, gopf.Subresource("*"))
	x.WithLabel("somelabel", gopf.Is("somevalue")).Mutate("defaults", defaults,
		gopf.Operations(admissionv1.Create, admissionv1.Update))
	cli.Main(op)
}

// create shows that admission handlers and change handlers work together.
func create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.SetResult(map[string]string{"message": "hello world"})
	return nil
}

// show logs the request and returns warnings, which kubectl prints.
func show(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	r.Log.Info("Received an admission request.", "operation", r.Operation, "user", r.User.Username,
		"dryRun", r.DryRun, "changes", len(r.Diff), "agent", r.Header.Get("User-Agent"), "certificate", r.ClientCertificate != nil)
	if r.Operation == admissionv1.Create {
		r.AddWarning("%s is only an example", r.Object.GetName())
	}
	r.AddWarning("The user agent of the API server is %s", cmp.Or(r.Header.Get("User-Agent"), "unknown"))
	switch {
	case r.ClientCertificate == nil: // see ClientCAFile of webhook.Local
		r.AddWarning("The API server has shown no certificate")
	case r.ClientCertificate.Subject.CommonName == "":
		r.AddWarning("The certificate of the API server has no common name")
	default:
		r.AddWarning("The API server is %s", r.ClientCertificate.Subject.CommonName)
	}
	return nil
}

// refuse is called only for objects with the unwanted value.
func refuse(context.Context, *gopf.Review[gopf.Unstructured]) error {
	return &gopf.AdmissionError{Message: "this value is not allowed", Code: 555}
}

// refuseWrong denies a value, except in dry runs.
func refuseWrong(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	if field, _ := gopf.ValueAt[string](r, "spec.field"); field == "wrong" && !r.DryRun {
		return &gopf.AdmissionError{Message: "this field is wrong: change it"}
	}
	return nil
}

// parts is also called for subresources such as the status. If the status repeats a
// field of the spec, both must have the same value.
func parts(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	wanted, _ := gopf.ValueAt[string](r, "spec.field")
	told, given := gopf.ValueAt[string](r, "status.field")
	switch {
	case !given || told == wanted:
		return nil
	case r.Subresource == "status":
		return &gopf.AdmissionError{Message: fmt.Sprintf("status.field must be %q, as spec.field", wanted)}
	default:
		r.AddWarning("Update status.field as well: it is %q", told)
		return nil
	}
}

// servers returns all kinds of webhook servers by name. A tunnel for remote clusters is
// in the module gopf.dev/gopf/webhook/ngrok; see docs/admission.md.
func servers() map[string]webhook.Server {
	files := webhook.Local{Port: 1234, CertFile: "cert.pem", KeyFile: "key.pem"}
	return map[string]webhook.Server{
		"auto":           webhook.Auto{},                               // detects the kind of the local cluster
		"local":          webhook.Local{},                              // with a self-signed certificate
		"local-files":    files,                                        // with a certificate from files
		"k3d":            webhook.K3d(webhook.Local{CADump: "ca.pem"}), // trust ca.pem in curl
		"k3d-files":      webhook.K3d(files),
		"minikube":       webhook.Minikube(webhook.Local{Port: 1234, CADump: "ca.pem"}),
		"docker-desktop": webhook.DockerDesktop(webhook.Local{}),
		"service":        webhook.Service{Name: "myoperator", Listen: webhook.Local{Port: 9443}}, // in a pod
	}
}

// defaults sets a missing number, and reduces one that is too large.
func defaults(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	copies, given := gopf.ValueAt[int](r, "spec.copies")
	if !given {
		r.Patch.Set("spec.copies", 1)
	}
	if copies > 10 {
		r.AddWarning("10 copies are enough")
		r.Patch.Set("spec.copies", 10)
	}
	r.Patch.Set("spec.injected", 123)
	return nil
}
