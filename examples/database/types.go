package main

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Database is a database with its backups.
// +kubebuilder:resource:shortName=db
// +kubebuilder:printcolumn:name=Engine,type=string,JSONPath=.spec.engine
// +kubebuilder:printcolumn:name=Version,type=string,JSONPath=.spec.version
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=.status.state
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=.status.readyReplicas
// +kubebuilder:printcolumn:name=Desired,type=integer,JSONPath=.spec.replicas
// +kubebuilder:printcolumn:name=Pending,type=string,JSONPath=.status.pendingAction,priority=1
// +kubebuilder:printcolumn:name=Endpoint,type=string,JSONPath=.status.endpoint,priority=1
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitzero"`
}

// DatabaseSpec is the desired state. The API server enforces the schema in deploy/crd.yaml,
// which is generated from these types, so handlers need not validate the fields.
type DatabaseSpec struct {
	// Engine is the software of the database.
	// +kubebuilder:validation:Enum=postgresql;mysql;mariadb
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the engine of a database cannot be changed"
	Engine string `json:"engine"` // a key of engines
	// Version is the tag of the container image.
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_.-]*$`
	Version string `json:"version"`
	// Storage is the size of the volume of each replica.
	// +kubebuilder:validation:Pattern=`^[0-9]+(Gi|Mi)$`
	Storage string `json:"storage"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +kubebuilder:default=1
	// +optional
	Replicas int32 `json:"replicas"`
	// +kubebuilder:default=true
	// +optional
	BackupEnabled bool `json:"backupEnabled"`
}

// DatabaseStatus is the observed state.
type DatabaseStatus struct {
	// +kubebuilder:validation:Enum=Provisioning;Ready;Degraded;Failed
	State string `json:"state,omitempty"`
	// Error is the reason for the state Failed.
	Error string `json:"error,omitempty"`
	// PendingAction is the manual step that is due, if any.
	PendingAction string `json:"pendingAction,omitempty"`
	Engine        string `json:"engine,omitempty"`
	Version       string `json:"version,omitempty"`
	Endpoint      string `json:"endpoint,omitempty"`
	// Replicas are the desired replicas of the StatefulSet.
	Replicas      int32              `json:"replicas"`
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
