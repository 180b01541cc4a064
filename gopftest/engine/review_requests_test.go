package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// Requests of handlers may wait for a review of the operator itself. If the review waited for
// their slots, nothing would go on until it times out.
func TestRequestsOfReviewsDoNotWaitForThoseOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, configMaps, "v1/secrets",
			"admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations")
		op := gopf.New()
		op.Settings.Admission.Server, op.Settings.Admission.Managed = hooked(c, new(atomic.Int32)), "hooks.example.com"
		examples := gopf.For[*Example](op, resource)
		examples.OnCreate("waiting", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			return ch.API.Get(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "slow"}})
		})
		examples.Validate("lookup", func(ctx context.Context, r *gopf.Review[*Example]) error {
			return r.API.Get(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "quick"}})
		})
		c.Create(t, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "quick", Namespace: "default"}})
		slow := c.Fault(gopftest.Requests("get", "configmaps"), gopftest.Hang())
		defer slow.Stop()
		for i := range 300 {
			c.Seed(t, example(fmt.Sprint("busy-", i), "a"))
		}
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(5 * time.Second)
		if slow.Struck() == 0 {
			t.Fatal("no handler waits")
		}
		began := time.Now()
		c.Create(t, example("new", "a"))
		if took := time.Since(began); took > time.Second {
			t.Errorf("the review took %v", took)
		}
	})
}
