// Package v1beta1 has an older version of a type of package v1.
package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Plain is a sample with other fields.
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +gopf:breaking:accepted="the former name"
		Name string `json:"name"`
	} `json:"spec"`
}
