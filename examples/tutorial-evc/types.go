package main

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const resourceName = "kopf.dev/v1/ephemeralvolumeclaims"

// EphemeralVolumeClaim is a claim for a volume that is needed for a while only.
type EphemeralVolumeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   EphemeralVolumeClaimSpec   `json:"spec"`
	Status EphemeralVolumeClaimStatus `json:"status"`
}

// EphemeralVolumeClaimSpec is the desired state, written by users.
type EphemeralVolumeClaimSpec struct {
	Size string `json:"size,omitempty"`
}

// EphemeralVolumeClaimStatus is the observed state, written by the operator.
type EphemeralVolumeClaimStatus struct {
	Claim string `json:"claim,omitempty"` // the name of the PersistentVolumeClaim
}
