package handling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

const (
	childMaps        = "v1/configmaps"
	childSecrets     = "v1/secrets"
	childDeployments = "apps/v1/deployments"
)

// declareChildren returns an operator whose objects have a ConfigMap, a Secret and a
// Deployment. Without extra, the Secret is not declared.
func declareChildren(state string, extra bool) *gopf.Operator {
	return ownedBy(state, func(r *gopf.Reconciliation[*Example]) error {
		gopf.Want(r, configChild("config", r.Object.Spec.Field))
		if extra {
			gopf.Want(r, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"password": "plain"}})
		}
		gopf.Want(r, webChild("web"))
		return nil
	}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*corev1.Secret](), gopf.Owns[*appsv1.Deployment]())
}

// childWrites returns the writes to children, like "PATCH configmaps/config".
func (o *operator) childWrites() []string {
	return slices.DeleteFunc(o.wire.lines(), func(line string) bool {
		return strings.Contains(line, " examples/") || strings.Contains(line, " events")
	})
}

func (s *space) awaitValue(resource, name, want string, path ...string) {
	s.T.Helper()
	kit.Await(s.T, fmt.Sprintf("%s of %s is %s", strings.Join(path, "."), name, want), func() bool {
		o := s.Get(resource, name)
		if o == nil {
			return false
		}
		v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return fmt.Sprint(v) == want && o.GetDeletionTimestamp() == nil
	})
}

func TestChildrenAreRepairedByExactlyOneWriteEach(t *testing.T) {
	t.Parallel()
	for _, state := range []string{inAnnotations, inStatus} {
		t.Run("state in "+state, func(t *testing.T) {
			t.Parallel()
			childrenAreRepaired(t, state)
		})
	}
}

func childrenAreRepaired(t *testing.T, state string) {
	s := newSpace(t)
	o := s.start(declareChildren(state, true), nil)
	s.Create(examples, "x", spec("a"))
	s.awaitValue(childMaps, "config", "a", "data", "key")
	s.awaitValue(childSecrets, "secret", "cGxhaW4=", "data", "password")
	s.awaitValue(childDeployments, "web", "1", "spec", "replicas")
	want := []string{"PATCH configmaps/config", "PATCH secrets/secret", "PATCH deployments/web"}
	if got := o.childWrites(); !slices.Equal(got, want) {
		t.Errorf("the creation caused the writes %q", got)
	}
	s.Patch(childMaps, "config", fields{"data": fields{"key": "edited"}})
	s.awaitValue(childMaps, "config", "a", "data", "key")
	s.Patch(childSecrets, "secret", fields{"data": fields{"password": "ZWRpdGVk"}})
	s.awaitValue(childSecrets, "secret", "cGxhaW4=", "data", "password")
	s.Patch(childDeployments, "web", fields{"spec": fields{"replicas": int64(7)}}, "scale")
	s.awaitValue(childDeployments, "web", "1", "spec", "replicas")
	s.Delete(childMaps, "config")
	s.awaitValue(childMaps, "config", "a", "data", "key")
	s.Patch(childMaps, "config", fields{"metadata": fields{"labels": fields{"gopf.dev/children": nil}}})
	s.awaitValue(childMaps, "config", "children.gopf.dev", "metadata", "labels", "gopf.dev/children")
	s.Patch(childMaps, "config", fields{"data": fields{"foreign": "value"}}) // not ours: it stays
	time.Sleep(2 * time.Second)
	want = append(want, "PATCH configmaps/config", "PATCH secrets/secret", "PATCH deployments/web", "PATCH configmaps/config", "PATCH configmaps/config")
	if got := o.childWrites(); !slices.Equal(got, want) {
		t.Errorf("the repairs caused the writes\n%q, want\n%q", got, want)
	}
	s.awaitValue(childMaps, "config", "value", "data", "foreign")
	o.Stop()
	for _, line := range strings.Split(o.Log.String(), "\n") {
		if strings.Contains(line, "kube-root-ca.crt") {
			t.Errorf("there is a log line about a foreign object: %s", line)
		}
	}

	again := s.start(declareChildren(state, true), nil).following("examples")
	time.Sleep(2 * time.Second)
	if got := again.wire.lines(); len(got) > 0 {
		t.Errorf("a restart caused the writes %q", got)
	}
	again.Stop()

	pruning := s.start(declareChildren(state, false), nil)
	kit.Await(t, "the Secret is gone", func() bool { return s.Get(childSecrets, "secret") == nil })
	time.Sleep(time.Second)
	if got := pruning.childWrites(); !slices.Equal(got, []string{"DELETE secrets/secret"}) {
		t.Errorf("a removed declaration caused the writes %q", got)
	}
}
