package readiness_test

import (
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/readiness"
)

// TestVerdictsAreThoseOfKstatus has one object for each rule.
func TestVerdictsAreThoseOfKstatus(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   readiness.State
	}{
		"ConfigMap":               {`{"apiVersion":"v1","kind":"ConfigMap"}`, readiness.Current},
		"being deleted":           {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"deletionTimestamp":"x"}}`, readiness.InProgress},
		"unobserved generation":   {`{"kind":"A","metadata":{"generation":2},"status":{"observedGeneration":1}}`, readiness.InProgress},
		"custom, ready":           {`{"kind":"A","status":{"conditions":[{"type":"Ready","status":"True"}]}}`, readiness.Current},
		"custom, not ready":       {`{"kind":"A","status":{"conditions":[{"type":"Ready","status":"False"}]}}`, readiness.InProgress},
		"custom, reconciling":     {`{"kind":"A","status":{"conditions":[{"type":"Reconciling","status":"True"}]}}`, readiness.InProgress},
		"custom, stalled":         {`{"kind":"A","status":{"conditions":[{"type":"Stalled","status":"True"}]}}`, readiness.Failed},
		"Deployment, new":         {`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1}}`, readiness.InProgress},
		"Deployment, ready":       {`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"availableReplicas":1,"readyReplicas":1}}`, readiness.Current},
		"Deployment, old pods":    {`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":1,"availableReplicas":1,"readyReplicas":1}}`, readiness.InProgress},
		"Deployment, stuck":       {`{"apiVersion":"apps/v1","kind":"Deployment","status":{"observedGeneration":1,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`, readiness.Failed},
		"StatefulSet, ready":      {`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"replicas":2},"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2,"currentRevision":"a","updateRevision":"a"}}`, readiness.Current},
		"StatefulSet, updating":   {`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"replicas":2},"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2,"currentRevision":"a","updateRevision":"b"}}`, readiness.InProgress},
		"StatefulSet, not ready":  {`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"replicas":2},"status":{"observedGeneration":1,"replicas":2,"readyReplicas":1}}`, readiness.InProgress},
		"StatefulSet, OnDelete":   {`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"updateStrategy":{"type":"OnDelete"}}}`, readiness.Current},
		"ReplicaSet, new":         {`{"apiVersion":"apps/v1","kind":"ReplicaSet"}`, readiness.InProgress},
		"DaemonSet, new":          {`{"apiVersion":"apps/v1","kind":"DaemonSet"}`, readiness.InProgress},
		"DaemonSet, ready":        {`{"apiVersion":"apps/v1","kind":"DaemonSet","status":{"observedGeneration":1,"desiredNumberScheduled":1,"currentNumberScheduled":1,"updatedNumberScheduled":1,"numberAvailable":1,"numberReady":1}}`, readiness.Current},
		"Job, not started":        {`{"apiVersion":"batch/v1","kind":"Job"}`, readiness.InProgress},
		"Job, running":            {`{"apiVersion":"batch/v1","kind":"Job","status":{"startTime":"x"}}`, readiness.Current},
		"Job, failed":             {`{"apiVersion":"batch/v1","kind":"Job","status":{"conditions":[{"type":"Failed","status":"True"}]}}`, readiness.Failed},
		"Pod, pending":            {`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Pending"}}`, readiness.InProgress},
		"Pod, ready":              {`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, readiness.Current},
		"Pod, failed":             {`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Failed"}}`, readiness.Failed},
		"claim, pending":          {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Pending"}}`, readiness.InProgress},
		"claim, bound":            {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Bound"}}`, readiness.Current},
		"Service":                 {`{"apiVersion":"v1","kind":"Service","spec":{"type":"ClusterIP"}}`, readiness.Current},
		"load balancer, new":      {`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"}}`, readiness.InProgress},
		"definition, new":         {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"}`, readiness.InProgress},
		"definition, established": {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Established","status":"True"}]}}`, readiness.Current},
		"another group":           {`{"apiVersion":"example.com/v1","kind":"Deployment"}`, readiness.Current},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := jsonvalue.Object([]byte(c.object))
			if err != nil {
				t.Fatal(err)
			}
			got := readiness.Of(o)
			if got.State != c.want || (got.Message == "") != (c.want == readiness.Current) {
				t.Errorf("got %s (%q), want %s", got.State, got.Message, c.want)
			}
		})
	}
}
