package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

// Shop is the parent. Each of its branches is a Branch.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// +optional
		Branches []string `json:"branches"`
		// Image is the container image of all branches.
		// +optional
		Image string `json:"image"`
	} `json:"spec"`
	Status struct {
		ReadyBranches int `json:"readyBranches,omitempty"`
		// +listType=map
		// +listMapKey=type
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

// Branch is a child of a Shop. It has a Deployment. Users may also create branches without
// a shop.
type Branch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BranchSpec   `json:"spec"`
	Status            BranchStatus `json:"status,omitzero"`
}

// BranchSpec is the desired state of a Branch.
type BranchSpec struct {
	// +optional
	Image string `json:"image"`
}

// BranchStatus is the observed state of a Branch.
type BranchStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("shops.gopf.dev"))
	shops := gopf.For[*Shop](op, "gopf.dev/v1/shops")
	branches := gopf.For[*Branch](op, "gopf.dev/v1/branches")
	shops.Reconcile("branches", declareBranches, gopf.Owns[*Branch]())
	branches.Reconcile("deployment", declareDeployment, gopf.Owns[*appsv1.Deployment]())
	return op
}

// declareBranches declares the second level. A new image reaches one branch after the
// other: the condition Ready of a branch reports whether its Deployment is ready.
func declareBranches(_ context.Context, r *gopf.Reconciliation[*Shop]) error {
	ready := 0
	for _, name := range r.Object.Spec.Branches {
		child := &Branch{Spec: BranchSpec{Image: r.Object.Spec.Image}}
		child.Name = r.Object.Name + "-" + name
		if gopf.Want(r, child, gopf.RollingUpdate("branches", 1)).Ready {
			ready++
		}
	}
	r.Patch.MergeStatus(map[string]any{"readyBranches": ready})
	return nil
}

// declareDeployment declares the third level.
func declareDeployment(_ context.Context, r *gopf.Reconciliation[*Branch]) error {
	labels := map[string]string{"branch": r.Object.Name}
	d := &appsv1.Deployment{}
	d.Name = r.Object.Name
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: r.Object.Spec.Image}}
	gopf.Want(r, d)
	return nil
}
