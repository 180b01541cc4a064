package gopftest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/webhook"
)

// reviewingOperator returns an operator with a validating and a mutating handler.
func reviewingOperator(server webhook.Server) *gopf.Operator {
	op := gopf.New()
	op.Settings.Admission.Server = server
	if server != nil {
		op.Settings.Admission.Managed = "check.example.com"
	}
	x := gopf.For[*example](op, examples)
	x.Validate("check", func(_ context.Context, r *gopf.Review[*example]) error {
		if r.Operation != admissionv1.Delete && r.Object.Spec.Size > 100 {
			return gopf.Deny("%d is too much", r.Object.Spec.Size)
		}
		return nil
	})
	x.Mutate("default", func(_ context.Context, r *gopf.Review[*example]) error {
		if r.Object.Spec.Name == "" {
			r.Patch.Set("spec.name", "nobody")
		}
		return nil
	})
	return op
}

// send creates an example through the API, as a client does.
func send(t *testing.T, c *gopftest.Cluster, name string, size int) (*unstructured.Unstructured, error) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(size)},
	}}
	gvr := schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}
	return client.Resource(gvr).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{})
}

func TestWebhooksOfStartedOperatorsAreServedInProcess(t *testing.T) {
	for name, server := range map[string]webhook.Server{
		"none": nil, "local": webhook.Local{Port: 9443, Path: "hooks"}, "auto": webhook.Auto{}, "service": webhook.Service{Name: "operator"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t, examples)
				stop := gopftest.Start(t, reviewingOperator(server), c)
				time.Sleep(time.Second)
				if _, err := send(t, c, "large", 200); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "200 is too much") {
					t.Errorf("not denied: %v", err)
				}
				small, err := send(t, c, "small", 1)
				if err != nil {
					t.Fatal(err)
				}
				if got, _, _ := unstructured.NestedString(small.Object, "spec", "name"); got != "nobody" {
					t.Errorf("not mutated: %v", small.Object["spec"])
				}
				stop()
				if _, err := send(t, c, "later", 200); err != nil {
					t.Errorf("reviewed after the operator stopped: %v", err)
				}
			})
		})
	}
}

func TestOperatorsDoNotOverwriteTheirOwnWebhookConfigurations(t *testing.T) {
	for name, resources := range map[string][]string{"served": {examples}, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t, resources...)
				gopftest.Start(t, reviewingOperator(nil), c)
				time.Sleep(time.Hour)
				written := 0
				for _, r := range c.Requests() {
					if strings.Contains(r.Path, "webhookconfigurations") && r.Write() {
						written++
					}
				}
				if written != 2 {
					t.Errorf("%d writes of the two configurations", written)
				}
			})
		})
	}
}

func TestReplicasShareOneWebhookAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, examples)
		gopftest.Start(t, reviewingOperator(nil), c)
		time.Sleep(time.Second)
		first := gopftest.Start(t, reviewingOperator(nil), c)
		time.Sleep(time.Second)
		first()
		time.Sleep(time.Minute)
		if _, err := send(t, c, "large", 200); !apierrors.IsForbidden(err) {
			t.Errorf("not denied: %v", err)
		}
	})
}

func TestCommandsActOnTheClusterOfTheTest(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(elsewhere, []byte("not a kubeconfig"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", elsewhere)
	t.Setenv("GOPF_FREEZE_CONTEXT", "production")
	c := gopftest.NewCluster(t, peerings)
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": map[string]any{"name": "default"},
	}})
	op := gopf.New()
	op.OnLogin("elsewhere", gopf.LoginWithKubeconfig(elsewhere, ""))
	frozen := func() int {
		status, _, _ := unstructured.NestedMap(c.Get(t, peerings, "", "default").Object, "status")
		return len(status)
	}
	freeze := gopftest.RunCommand(t, op, c, "freeze", "-A", "--peering=default", "--lifetime=10m", "--id=me")
	if code := freeze.ExitCode(); code != 0 || frozen() != 1 {
		t.Errorf("freeze: exit code %d, %d records, output %q", code, frozen(), freeze.Output())
	}
	resume := gopftest.RunCommand(t, op, c, "resume", "-A", "--peering=default", "--id=me")
	if code := resume.ExitCode(); code != 0 || frozen() != 0 {
		t.Errorf("resume: exit code %d, %d records, output %q", code, frozen(), resume.Output())
	}
}

const peerings = "kopf.dev/v1/clusterkopfpeerings"
