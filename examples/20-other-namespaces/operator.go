package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

// Team is a team with its namespaces. Each of them gets a ConfigMap with the contact.
type Team struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// +optional
		Contact string `json:"contact"`
		// +optional
		Namespaces []string `json:"namespaces"`
	} `json:"spec"`
	Status struct {
		// +listType=map
		// +listMapKey=type
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("teams.gopf.dev"))
	gopf.For[*Team](op, "gopf.dev/v1/teams").Reconcile("contacts", declareContacts,
		gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
	return op
}

// declareContacts declares a ConfigMap in each namespace of the team. A namespace that does
// not exist yet is an error: the others get theirs, and the function is called again.
func declareContacts(_ context.Context, r *gopf.Reconciliation[*Team]) error {
	for _, namespace := range r.Object.Spec.Namespaces {
		contact := &corev1.ConfigMap{Data: map[string]string{"contact": r.Object.Spec.Contact}}
		contact.Name, contact.Namespace = "team-"+r.Object.Name, namespace
		gopf.Want(r, contact)
	}
	return nil
}
