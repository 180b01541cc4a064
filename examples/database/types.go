package main

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Database is the kind that users create. The API server enforces the schema in
// deploy/crd.yaml, so handlers need not validate the fields.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitzero"`
}

// DatabaseSpec is the desired state.
type DatabaseSpec struct {
	Engine        string `json:"engine"` // a key of engines
	Version       string `json:"version"`
	Storage       string `json:"storage"` // of each replica
	Replicas      int32  `json:"replicas"`
	BackupEnabled bool   `json:"backupEnabled"`
}

// DatabaseStatus is the observed state.
type DatabaseStatus struct {
	State         string             `json:"state,omitempty"`         // Provisioning, Ready, Degraded or Failed
	Error         string             `json:"error,omitempty"`         // the reason for the state Failed
	PendingAction string             `json:"pendingAction,omitempty"` // the manual step that is due, if any
	Engine        string             `json:"engine,omitempty"`
	Version       string             `json:"version,omitempty"`
	Endpoint      string             `json:"endpoint,omitempty"`
	Replicas      int32              `json:"replicas"` // desired replicas of the StatefulSet
	ReadyReplicas int32              `json:"readyReplicas"`
	Backups       bool               `json:"backups,omitempty"` // there is a volume with backups
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// States of a database.
const (
	provisioning = "Provisioning" // no replica has been ready yet
	ready        = "Ready"        // all replicas are ready
	degraded     = "Degraded"     // some replicas are not ready, or too many are
	failed       = "Failed"       // a child could not be applied; the operator retries
)
