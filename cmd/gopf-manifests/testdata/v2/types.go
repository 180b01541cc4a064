// Package v2 has a newer version of a type of package v1, which is not stored yet.
package v2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Plain is a sample with other fields.
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +gopf:breaking:accepted="the new name"
		Names []string `json:"names"`
	} `json:"spec"`
}

// Marked is a sample that is not the newest version, but is stored.
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=mk
type Marked struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
