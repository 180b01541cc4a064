//go:build gopf_kubectl

package kubectl

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/dev/controlplane"
)

// shell runs kubectl on one server.
type shell struct {
	t   *testing.T
	env []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	server, err := controlplane.Start(t.Context(), controlplane.Options{Memory: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-server.Done():
			t.Errorf("the server ended: %v", server.Err())
		default:
			_ = server.Stop()
		}
	})
	return &shell{t, append(os.Environ(), "KUBECONFIG="+server.Kubeconfig(), "HOME="+t.TempDir())}
}

// run runs kubectl, which must succeed, and returns its output.
func (s *shell) run(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *shell) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// shows runs kubectl and checks that its output has all of the texts.
func (s *shell) shows(texts []string, args ...string) {
	s.t.Helper()
	out := s.run(args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("kubectl %s: the output has no %q:\n%s", strings.Join(args, " "), text, out)
		}
	}
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: disks, singular: disk, kind: Disk, listKind: DiskList, shortNames: [dsk]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations: [{rule: "self.size != 13"}]
            properties:
              size: {type: integer, minimum: 1, description: The size in gigabytes.}
              tier: {type: string, default: slow}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const object = `apiVersion: example.com/v1
kind: Disk
metadata: {name: data, namespace: default}
spec: {size: 5}
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKubectlWorksWithCustomResources(t *testing.T) {
	k := newShell(t)
	k.shows([]string{"-gopf-in-memory"}, "version")
	k.shows([]string{"disks.example.com created", "does not evaluate x-kubernetes-validations"}, "apply", "-f", file(t, definition))
	k.run("wait", "--for=condition=established", "crd/disks.example.com", "--timeout=30s")
	k.shows([]string{"created"}, "apply", "-f", file(t, object))
	k.shows([]string{"unchanged"}, "apply", "-f", file(t, object))
	k.shows([]string{"configured"}, "apply", "-f", file(t, strings.Replace(object, "5", "6", 1)))
	k.shows([]string{"NAME", "SIZE", "data", "6"}, "get", "dsk")
	k.shows([]string{"Size:  6", "Tier:  slow", "Events:"}, "describe", "disk", "data")
	k.shows([]string{"serverside-applied"}, "apply", "--server-side", "--field-manager=me", "-f", file(t, strings.Replace(object, "name: data", "name: other", 1)))
	k.shows([]string{"manager: me"}, "get", "disk", "other", "--show-managed-fields", "-o", "yaml")
	k.shows([]string{"patched"}, "patch", "disk", "data", "--type=merge", "-p", `{"spec":{"size":7}}`)
	editor := file(t, "#!/bin/sh\nsed -i 's/size: 7/size: 8/' \"$1\"\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}
	k.env = append(k.env, "KUBE_EDITOR="+editor)
	k.shows([]string{"edited"}, "edit", "disk", "data")
	k.shows([]string{"8"}, "get", "disk", "data", "-o", "jsonpath={.spec.size}")
	k.shows([]string{"patched"}, "patch", "disk", "data", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Ready"}}`)
	k.run("wait", "--for=jsonpath={.status.phase}=Ready", "disk/data", "--timeout=30s")
	k.shows([]string{"labeled"}, "label", "disk", "data", "a=b")
	k.shows([]string{"data"}, "get", "disk", "-l", "a=b")
	if out, err := k.try("patch", "disk", "data", "--type=merge", "-p", `{"spec":{"size":0}}`); err == nil || !strings.Contains(out, "spec.size") {
		t.Errorf("an invalid size was accepted, or the error does not name it: %s", out)
	}
	k.shows([]string{"deleted"}, "delete", "disk", "--all", "--timeout=30s")
	k.shows([]string{"No resources found"}, "get", "disk")
}

func TestKubectlExplainsFields(t *testing.T) {
	k := newShell(t)
	k.run("apply", "-f", file(t, definition))
	k.shows([]string{"example.com", "The size in gigabytes."}, "explain", "disk.spec.size")
	k.shows([]string{"Number of desired pods"}, "explain", "deployment.spec.replicas")
	k.shows([]string{"containers", "<[]Container>"}, "explain", "pod.spec")
}

func TestKubectlWorksWithWellKnownKinds(t *testing.T) {
	k := newShell(t)
	k.shows([]string{"created"}, "create", "namespace", "team")
	k.shows([]string{"created"}, "-n", "team", "create", "deployment", "web", "--image=nginx")
	k.shows([]string{"scaled"}, "-n", "team", "scale", "deployment", "web", "--replicas=3")
	k.shows([]string{"deployment.apps/web"}, "-n", "team", "get", "all")
	k.shows([]string{"3 desired"}, "-n", "team", "describe", "deployment", "web")
	k.shows([]string{"image updated"}, "-n", "team", "set", "image", "deployment/web", "nginx=nginx:2")
	k.shows([]string{"created"}, "-n", "team", "create", "configmap", "c", "--from-literal=a=b")
	k.shows([]string{"deleted"}, "delete", "namespace", "team", "--timeout=30s")
	k.shows([]string{"customresourcedefinitions", "deployments"}, "api-resources")
}

func TestKubectlTellsPermissions(t *testing.T) {
	k := newShell(t)
	k.shows([]string{"yes"}, "auth", "can-i", "create", "pods")
	k.shows([]string{"*.*"}, "auth", "can-i", "--list")
	account := "--as=system:serviceaccount:default:robot"
	if out, err := k.try("auth", "can-i", "list", "pods", account); err == nil || !strings.Contains(out, "no") {
		t.Errorf("an account without roles: got %s", out)
	}
	k.run("create", "role", "reader", "--verb=list", "--resource=pods")
	k.run("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:robot")
	k.shows([]string{"yes"}, "auth", "can-i", "list", "pods", account)
	k.shows([]string{"No resources found"}, "get", "pods", account)
}

func TestKubectlWatches(t *testing.T) {
	k := newShell(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "kubectl", "get", "configmaps", "--watch", "-o", "name")
	cmd.Env = k.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = cmd.Wait() }()
	k.run("create", "configmap", "seen", "--from-literal=a=b")
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "configmap/seen" {
		t.Errorf("got %q, %v", lines.Text(), lines.Err())
	}
}
