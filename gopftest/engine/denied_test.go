package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A validator denies the change that a handler has requested. Its code may be that of a server that
// does not work, or that knows no such object. A deletion must not wait until it agrees.
func TestADeletionDoesNotWaitForADeniedChange(t *testing.T) {
	for name, denial := range map[string]error{
		"a plain error": errors.New("the backend does not know this"),
		"401":           &gopf.AdmissionError{Message: "no", Code: 401},
		"403":           gopf.Deny("no"),
		"404":           &gopf.AdmissionError{Message: "no", Code: 404},
		"409":           &gopf.AdmissionError{Message: "no", Code: 409},
		"429":           &gopf.AdmissionError{Message: "no", Code: 429},
		"504":           &gopf.AdmissionError{Message: "no", Code: 504},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t,
					"admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations")
				c.Define(t, gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true, StatusSubresource: true})
				op := gopf.New()
				op.Settings.Admission.Server, op.Settings.Admission.Managed = hooked(c, new(atomic.Int32)), "hooks.example.com"
				examples := gopf.For[*Example](op, resource)
				examples.OnCreate("create", func(_ context.Context, c *gopf.Change[*Example]) error {
					c.Patch.Label("seen", "yes")
					return nil
				})
				var deletions atomic.Int32
				examples.OnDelete("delete", func(context.Context, *gopf.Change[*Example]) error {
					deletions.Add(1)
					return nil
				})
				examples.Validate("check", func(_ context.Context, r *gopf.Review[*Example]) error {
					if r.Operation == "UPDATE" {
						return denial
					}
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(3 * time.Minute)
				c.Delete(t, resource, "default", "x")
				time.Sleep(5 * time.Second)
				if _, left := c.Lookup(t, resource, "default", "x"); left || deletions.Load() != 1 {
					t.Errorf("the object is left: %v; the delete handler was called %d times", left, deletions.Load())
				}
			})
		})
	}
}
