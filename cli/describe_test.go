package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/webhook"
)

type Room struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct{} `json:"status,omitzero"`
}

// described runs the command 'describe' and returns what it prints.
func described(t *testing.T, op *gopf.Operator, args ...string) (*describe.Operator, int, string) {
	t.Helper()
	var out, problems bytes.Buffer
	code := Run(t.Context(), op, append([]string{"describe"}, args...), &out, &problems)
	if code != 0 {
		return nil, code, problems.String()
	}
	d, err := describe.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return d, code, ""
}

func TestADescriptionHasTheDeclarations(t *testing.T) {
	op := gopf.New(gopf.Identity("rooms.example.com", gopf.StateInStatus("rooms")))
	op.Settings.Admission.Server = webhook.Service{Name: "rooms", Port: 8443}
	op.Settings.Admission.Managed = "rooms.example.com"
	op.OnStartup("boot", func(context.Context, *gopf.Activity) error { return nil })
	rooms := gopf.For[*Room](op, "example.com/v1/rooms")
	rooms.Field("spec.size").OnUpdate("resize", func(context.Context, *gopf.Change[*Room]) error { return nil })
	rooms.OnDelete("close", func(context.Context, *gopf.Change[*Room]) error { return nil })
	rooms.Timer("age", time.Hour, func(context.Context, *gopf.Tick[*Room]) error { return nil })
	rooms.Validate("check", func(context.Context, *gopf.Review[*Room]) error { return nil })
	rooms.Reconcile("children", func(context.Context, *gopf.Reconciliation[*Room]) error { return nil },
		gopf.Owns[*appsv1.StatefulSet](), gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()),
		gopf.Watches[*corev1.Secret](func(*Room) []types.NamespacedName { return nil }))
	gopf.For[*corev1.Pod](op, "pods").OnEvent("look", func(context.Context, *gopf.WatchEvent[*corev1.Pod]) error { return nil })
	gopf.RegisterType[*corev1.Secret](op, "v1/secrets", gopf.May("get", "create"))
	gopf.RegisterType[gopf.Unstructured](op, "example.org/v1/keys", gopf.May("list"))
	gopf.RegisterType[gopf.Unstructured](op, "apps/v1/deployments/scale", gopf.May("patch"))
	gopf.RegisterType[*corev1.Pod](op, "v1/pods/exec", gopf.May("create"))

	d, code, problem := described(t, op, "--namespace=a", "--election=lease", "--standalone")
	if code != 0 {
		t.Fatal(problem)
	}
	if d.Name != "rooms.example.com" || d.State.StatusKey != "rooms" || !d.Settings.Election || !d.Settings.Standalone || !d.Settings.Posting ||
		d.Settings.WebhookSecret != "rooms-webhook" || d.Settings.ServicePort != 8443 || d.Settings.Managed != "rooms.example.com" || d.Settings.Webhook != "webhook.Service" {
		t.Errorf("got %+v", d)
	}
	if diff := cmp.Diff([]string{"a"}, d.Scope.Namespaces); diff != "" {
		t.Error(diff)
	}
	var handlers []string
	for _, h := range d.Handlers {
		if !strings.HasPrefix(h.Where, "cli/describe_test.go:") {
			t.Errorf("%s is at %q", h.ID, h.Where)
		}
		line := h.Family + " " + h.ID + " of " + h.Resource.Group + "/" + h.Resource.Version + "/" + h.Resource.Plural + " " + strings.Join(h.Reasons, "|") + " " + h.Field
		for _, o := range h.Owns {
			line += " owns " + o.Resource.Group + "/" + o.Resource.Version + "/" + o.Resource.Plural
			if o.Anywhere {
				line += " anywhere"
			}
		}
		for _, r := range h.Watches {
			line += " watches " + r.Group + "/" + r.Version + "/" + r.Plural
		}
		handlers = append(handlers, strings.TrimSpace(line))
	}
	if diff := cmp.Diff([]string{
		"change resize/spec.size of example.com/v1/rooms update spec.size",
		"change close of example.com/v1/rooms delete",
		"timer age of example.com/v1/rooms",
		"validate check of example.com/v1/rooms",
		"reconcile children of example.com/v1/rooms   owns apps/v1/statefulsets owns /v1/configmaps anywhere watches /v1/secrets",
		"event look of /v1/pods",
		"startup boot of //",
	}, handlers); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var uses []string
	for _, u := range d.Uses {
		uses = append(uses, strings.Join(u.Verbs, ",")+" "+u.Resource.Group+"/"+u.Resource.Plural+"/"+u.Subresource+" "+u.Where[:len("cli/describe_test.go:")])
	}
	if diff := cmp.Diff([]string{"get,create /secrets/ cli/describe_test.go:", "list example.org/keys/ cli/describe_test.go:",
		"patch apps/deployments/scale cli/describe_test.go:", "create /pods/exec cli/describe_test.go:"}, uses); diff != "" {
		t.Error(diff)
	}
	var types []string
	for _, ty := range d.Types {
		line := ty.Resource.Text + " " + ty.Package + "." + ty.Name
		if ty.Status {
			line += " status"
		}
		if ty.Served {
			line += " served"
		}
		types = append(types, line)
	}
	if diff := cmp.Diff([]string{
		"example.com/v1/rooms gopf.dev/gopf/cli.Room status served",
		"pods k8s.io/api/core/v1.Pod status served",
		"v1/secrets k8s.io/api/core/v1.Secret",
	}, types); diff != "" {
		t.Error(diff)
	}
}

func TestDescribeReportsMistakesInDeclarations(t *testing.T) {
	op := gopf.New()
	gopf.RegisterType[*corev1.Secret](op, "v1/secrets", gopf.May("*"))
	if _, code, problem := described(t, op); code != 1 || !strings.Contains(problem, `May("*")`) || !strings.Contains(problem, "describe_test.go:") {
		t.Errorf("got %d, %q", code, problem)
	}
}

func TestASubresourceWithoutMayIsAMistake(t *testing.T) {
	op := gopf.New()
	gopf.RegisterType[*corev1.Pod](op, "v1/pods/exec")
	if _, code, problem := described(t, op); code != 1 || !strings.Contains(problem, `"v1/pods/exec" names a subresource`) {
		t.Errorf("got %d, %q", code, problem)
	}
}

func TestADescriptionOfAnotherVersionIsRefused(t *testing.T) {
	if _, err := describe.Parse([]byte(`{"version": 2}`)); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("got %v", err)
	}
}
