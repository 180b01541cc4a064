package main

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const resourceName = "kopf.dev/v1/ephemeralvolumeclaims"

// EphemeralVolumeClaim is a request for a volume that is deleted together with it.
// +kubebuilder:resource:shortName=evcs;evc
// +kubebuilder:printcolumn:name=Size,type=string,JSONPath=.spec.size
// +kubebuilder:printcolumn:name=Claim,type=string,JSONPath=.status.claim
type EphemeralVolumeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   EphemeralVolumeClaimSpec   `json:"spec"`
	Status EphemeralVolumeClaimStatus `json:"status"`
}

// EphemeralVolumeClaimSpec is the desired state.
type EphemeralVolumeClaimSpec struct {
	Size string `json:"size,omitempty"`
}

// EphemeralVolumeClaimStatus is the observed state.
type EphemeralVolumeClaimStatus struct {
	Claim string `json:"claim,omitempty"` // the name of the PersistentVolumeClaim
}
