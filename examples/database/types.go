package main

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Database is what users create. deploy/crd.yaml has the rules for its fields, so
// nothing has to be checked here.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitzero"`
}

// DatabaseSpec is what users want.
type DatabaseSpec struct {
	Engine        string `json:"engine"` // a key of engines
	Version       string `json:"version"`
	Storage       string `json:"storage"` // of each replica
	Replicas      int32  `json:"replicas"`
	BackupEnabled bool   `json:"backupEnabled"`
}

// DatabaseStatus is what the operator tells.
type DatabaseStatus struct {
	State         string             `json:"state,omitempty"` // Provisioning, Ready or Degraded
	Endpoint      string             `json:"endpoint,omitempty"`
	ReadyReplicas int32              `json:"readyReplicas"`
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// The types of conditions.
const (
	available = "Available" // there is a replica to talk to
	ready     = "Ready"     // all replicas are there
)
