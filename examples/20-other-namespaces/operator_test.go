package main

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/gopftest"
)

const (
	teams      = "gopf.dev/v1/teams"
	configMaps = "v1/configmaps"
)

func TestEachNamespaceOfATeamHasItsContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, configMaps, "v1/namespaces")
		c.Load(t, "deploy/crd.yaml")
		c.CreateNamespace(t, "a")
		gopftest.Start(t, newOperator(), c)
		team := &Team{TypeMeta: metav1.TypeMeta{APIVersion: "gopf.dev/v1", Kind: "Team"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "search"}}
		team.Spec.Contact, team.Spec.Namespaces = "search@example.com", []string{"a", "b"}
		c.Create(t, team)
		contact := func(namespace string) string {
			t.Helper()
			time.Sleep(time.Minute)
			return gopftest.Get[*corev1.ConfigMap](t, c, configMaps, namespace, "team-search").Data["contact"]
		}
		if got := contact("a"); got != "search@example.com" {
			t.Errorf("the contact is %q", got)
		}
		c.CreateNamespace(t, "b") // it did not exist: the operator tries again
		time.Sleep(5 * time.Minute)
		contact("b")
		c.Delete(t, configMaps, "b", "team-search")
		contact("b")

		c.Patch(t, teams, "default", "search", map[string]any{"spec": map[string]any{"namespaces": []any{"b"}}})
		c.WaitGone(t, configMaps, "a", "team-search")
		c.Delete(t, teams, "default", "search")
		c.WaitGone(t, teams, "default", "search")
		if _, found := c.Lookup(t, configMaps, "b", "team-search"); found {
			t.Error("a child outlives its owner")
		}
	})
}
