// Command main has the type of an operator.
package main

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Database is a database.
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=.status.state
// +kubebuilder:resource:shortName=db,categories=all
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Size in gigabytes.
		// +gopf:breaking:accepted="sizes are numbers now"
		Size int `json:"size,omitempty"`
	} `json:"spec"`
	Status struct {
		State    string `json:"state,omitempty"`
		Replicas int    `json:"replicas"`
	} `json:"status,omitzero"`
}

// Strict is a type whose status has only declared fields.
// +gopf:status:strict
// +kubebuilder:resource:scope=Cluster
type Strict struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		State string `json:"state,omitempty"`
	} `json:"status,omitzero"`
}

func main() {}
