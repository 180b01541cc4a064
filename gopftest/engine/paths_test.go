package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/kind"
)

const databaseCRD = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "databases.example.com"}, "spec": {
	"group": "example.com", "scope": "Namespaced", "names": {"plural": "databases", "kind": "Database"},
	"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
		"spec": {"type": "object", "properties": {"host": {"type": "string"}, "size": {"type": "integer"}}},
		"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}`

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return obj
}

// narrow is a type that lacks most fields.
type narrow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

// warnings returns the log lines about paths, and the requests for schemas.
func warnings(l *lines, c *gopftest.Cluster) (told []string, requests int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		if strings.Contains(line, "does not exist in the schema") || strings.Contains(line, "Doubtful declaration") {
			told = append(told, line)
		}
	}
	for _, r := range c.Requests() {
		if strings.HasPrefix(r.Path, "/openapi/") {
			requests++
		}
	}
	return told, requests
}

func TestPathsAreComparedWithTheSchemaOfTheCluster(t *testing.T) {
	cases := map[string]struct {
		declare  func(op *gopf.Operator)
		want     []string // parts of the only warning; nil means none
		requests int
	}{
		"a misspelled field": {func(op *gopf.Operator) {
			dbs := op.Resource("example.com/v1/databases")
			dbs.WithField("spec.hosst", gopf.Present).OnCreate("a", nothing)
			dbs.Field("spec.hosst").OnUpdate("b", nothing)
			dbs.WithField("spec.host", gopf.Present).OnDelete("c", nothing)
		}, []string{"The field spec.hosst of databases.v1.example.com does not exist in the schema of the cluster; did you mean spec.host?", "a", "b/spec.hosst"}, 2},
		"a field that only the type lacks": {func(op *gopf.Operator) {
			gopf.For[*narrow](op, "example.com/v1/databases").WithField("spec.host", gopf.Present).OnCreate("a", nothingNarrow)
		}, nil, 2},
		"a field that nothing describes": {func(op *gopf.Operator) {
			gopf.For[*narrow](op, resource).WithField("spec.host", gopf.Present).OnCreate("a", nothingNarrow)
		}, []string{"Doubtful declaration: spec.host: *narrow has no such field."}, 2},
		"fields of a free status": {func(op *gopf.Operator) {
			op.Resource("example.com/v1/databases").Field("status.whatever").OnChange("a", nothing)
		}, nil, 2},
		"metadata": {func(op *gopf.Operator) {
			op.Resource("example.com/v1/databases").Field("metadata.labels.x").OnChange("a", nothing)
		}, nil, 0},
		"labels only": {func(op *gopf.Operator) {
			op.Resource("example.com/v1/databases").WithLabel("x", gopf.Present).OnCreate("a", nothing)
		}, nil, 0},
		"a built-in kind": {func(op *gopf.Operator) {
			op.Resource("v1/pods").WithField("spec.nodeNam", gopf.Present).OnEvent("a", func(context.Context, *gopf.WatchEvent[gopf.Unstructured]) error { return nil })
		}, []string{"spec.nodeNam of pods.v1", "did you mean spec.nodeName?"}, 2},
		"a built-in kind with its type": {func(op *gopf.Operator) {
			gopf.For[*corev1.Pod](op, "v1/pods").Field("spec.nodeName").OnEvent("a", func(context.Context, *gopf.WatchEvent[*corev1.Pod]) error { return nil })
		}, nil, 2},
		"a review": {func(op *gopf.Operator) {
			op.Resource("example.com/v1/databases").WithField("spec.sice", gopf.Present).Validate("a", func(context.Context, *gopf.Review[gopf.Unstructured]) error { return nil })
		}, []string{"did you mean spec.size?"}, 2},
		"many resources": {func(op *gopf.Operator) {
			gopf.ForSelector[gopf.Unstructured](op, kind.Everything()).WithField("spec.hosst", gopf.Present).OnEvent("a", func(context.Context, *gopf.WatchEvent[gopf.Unstructured]) error { return nil })
		}, nil, 0},
	}
	for name, v := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t, resource, "v1/pods")
				c.Create(t, decoded(t, databaseCRD))
				op, log := gopf.New(), &lines{}
				v.declare(op)
				gopftest.Start(t, op, c, gopf.Log(log.logger()))
				time.Sleep(time.Minute)
				c.CutStreams()
				time.Sleep(time.Hour)
				told, requests := warnings(log, c)
				if v.want == nil && len(told) > 0 || v.want != nil && len(told) != 1 || requests != v.requests {
					t.Errorf("%d requests: %q", requests, told)
				}
				for _, part := range v.want {
					if len(told) == 1 && !strings.Contains(told[0], part) {
						t.Errorf("%q is not in %q", part, told)
					}
				}
			})
		})
	}
}

func nothing(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil }

func nothingNarrow(context.Context, *gopf.Change[*narrow]) error { return nil }

func TestPathsOfANewKindAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op, log := gopf.New(), &lines{}
		op.Resource("example.com/v1/databases").Field("spec.hosst").OnChange("a", nothing)
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		if told, requests := warnings(log, c); len(told) > 0 || requests > 0 {
			t.Errorf("before the kind exists: %d requests, %q", requests, told)
		}
		c.Create(t, decoded(t, databaseCRD))
		time.Sleep(time.Minute)
		if told, _ := warnings(log, c); len(told) != 1 {
			t.Errorf("got %q", told)
		}
	})
}

func TestPathsAreNotCheckedWithoutSchemas(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Without(gopftest.OpenAPI)
		c.Create(t, decoded(t, databaseCRD))
		op, log := gopf.New(), &lines{}
		op.Resource("example.com/v1/databases").Field("spec.hosst").OnChange("a", nothing)
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(time.Hour)
		if told, requests := warnings(log, c); len(told) > 0 || requests != 1 || log.has("ERROR") {
			t.Errorf("%d requests, %q", requests, told)
		}
	})
}
