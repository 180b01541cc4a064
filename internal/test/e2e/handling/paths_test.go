package handling_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"gopf.dev/gopf"
)

func TestPathsThatTheClusterDoesNotHaveAreReportedOnce(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	op.Settings.Watching.ClientTimeout = 500 * time.Millisecond
	ignore := func(context.Context, *gopf.WatchEvent[gopf.Unstructured]) error { return nil }
	event := func(id, resource, path string) {
		op.Resource(resource).WithField(path, gopf.Present).OnEvent(id, ignore)
	}
	event("typo", pruneds, "status.kepd")
	event("same", pruneds, "status.kepd")
	event("right", pruneds, "status.kept")
	event("free", pruneds, "spec.whatever.this.is")
	event("pods", "v1/pods", "spec.nodeNmae")
	event("more", "v1/pods", "spec.securityContext.runAsUser")
	event("list", "v1/pods", "spec.containers.image")
	event("known", "v1/pods", "metadata.labels.app")
	gopf.For[*appsv1.Deployment](op, "apps/v1/deployments").WithField("spec.template.spec.nodeName", gopf.Present).
		OnEvent("typed", func(context.Context, *gopf.WatchEvent[*appsv1.Deployment]) error { return nil })
	o := s.start(op, nil).following("pruneds", "pods", "deployments")
	wanted := []string{
		"The field status.kepd of pruneds.v1.handling.gopf.dev does not exist in the schema of the cluster; did you mean status.kept?",
		"The field spec.nodeNmae of pods.v1 does not exist in the schema of the cluster; did you mean spec.nodeName?",
		"The field spec.containers.image of pods.v1 does not exist in the schema of the cluster: spec.containers is a list.",
	}
	for _, line := range wanted {
		o.Log.WaitFor(t, line)
	}
	time.Sleep(2 * time.Second) // for reconnections, and for warnings that must not come
	warnings := append(o.Log.With("in the schema of the cluster"), o.Log.With("Doubtful declaration")...)
	if len(warnings) != len(wanted) {
		t.Errorf("got %q", warnings)
	}
	if line := o.Log.With(wanted[0]); len(line) != 1 || !strings.Contains(line[0], "typo") || !strings.Contains(line[0], "same") {
		t.Errorf("got %q, which must name the handlers", line)
	}
}
