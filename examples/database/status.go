package main

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observe tells how a database is, by its StatefulSet.
func observe(db *Database, set *appsv1.StatefulSet) DatabaseStatus {
	status := DatabaseStatus{
		State:         "Provisioning",
		Endpoint:      fmt.Sprintf("%s.%s.svc.cluster.local:%d", db.Name, db.Namespace, engines[db.Spec.Engine].port),
		ReadyReplicas: set.Status.ReadyReplicas,
		Conditions:    slices.Clone(db.Status.Conditions),
	}
	started := db.Status.State == "Ready" || db.Status.State == "Degraded"
	switch {
	case status.ReadyReplicas >= db.Spec.Replicas:
		status.State = "Ready"
	case status.ReadyReplicas > 0 || started:
		status.State = "Degraded"
	}
	counts := fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, db.Spec.Replicas)
	status.set(db, available, status.ReadyReplicas > 0, counts)
	status.set(db, ready, status.State == "Ready", counts)
	return status
}

// set keeps the time of the last transition where there is none.
func (s *DatabaseStatus) set(db *Database, kind string, holds bool, message string) {
	value := metav1.ConditionFalse
	if holds {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: value, Reason: s.State, Message: message, ObservedGeneration: db.Generation,
	})
}
