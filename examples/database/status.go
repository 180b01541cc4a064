package main

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

// observe derives the status of a database from its StatefulSet.
func observe(db *Database, set *appsv1.StatefulSet) DatabaseStatus {
	s := DatabaseStatus{
		State:         stateOf(db, set.Status.ReadyReplicas),
		Engine:        db.Spec.Engine,
		Version:       db.Spec.Version,
		Endpoint:      fmt.Sprintf("%s.%s.svc.cluster.local:%d", childName(db), db.Namespace, engines[db.Spec.Engine].port),
		Replicas:      db.Spec.Replicas,
		ReadyReplicas: set.Status.ReadyReplicas,
		Conditions:    slices.Clone(db.Status.Conditions),
	}
	counts := fmt.Sprintf("%d of %d replicas are ready", s.ReadyReplicas, db.Spec.Replicas)
	switch s.State {
	case ready:
		s.set(db, conditionReady, metav1.ConditionTrue, "DatabaseReady", "All replicas healthy")
	case degraded:
		s.set(db, conditionReady, metav1.ConditionFalse, degraded, counts)
	default:
		s.set(db, conditionReady, metav1.ConditionFalse, provisioning, "Database is being provisioned")
	}
	switch {
	case s.ReadyReplicas > 0:
		s.set(db, conditionAvailable, metav1.ConditionTrue, "DatabaseAvailable", "Database accepting connections")
	case s.State == provisioning:
		s.set(db, conditionAvailable, metav1.ConditionFalse, provisioning, "Waiting for first replica")
	default:
		s.set(db, conditionAvailable, metav1.ConditionFalse, degraded, counts)
	}
	return s
}

// stateOf returns the state for a number of ready replicas. A database is degraded only
// after it had a ready replica.
func stateOf(db *Database, readyReplicas int32) string {
	started := db.Status.State == ready || db.Status.State == degraded
	switch {
	case readyReplicas == db.Spec.Replicas:
		return ready
	case readyReplicas > 0 || started:
		return degraded
	default:
		return provisioning
	}
}

// failure returns the status of a database whose creation failed.
func failure(db *Database, err error) DatabaseStatus {
	s := db.Status
	s.State, s.Error = failed, err.Error()
	s.Engine, s.Version, s.Replicas = db.Spec.Engine, db.Spec.Version, db.Spec.Replicas
	s.Conditions = slices.Clone(s.Conditions)
	s.set(db, conditionReady, metav1.ConditionFalse, "ProvisionFailed", err.Error())
	return s
}

// set sets a condition. The time of the last transition changes only with the status of
// the condition.
func (s *DatabaseStatus) set(db *Database, kind string, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: db.Generation,
	})
}

// report sets the status. The operator writes it after the handler returns, on the latest
// version of the object. If the spec has changed since the call, report keeps the status:
// it must not overwrite the status from the update handler with an older one.
func report(s *gopf.Subject[*Database], status DatabaseStatus) {
	seen := s.Object.Generation
	s.Patch.Edit(func(db *Database) {
		if db.Generation == seen {
			db.Status = status
		}
	})
}
