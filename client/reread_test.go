package client

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/jsonvalue"
)

// A list of nulls is short, and takes hundreds of megabytes as decoded JSON of structs.
func TestObjectsThatBecomeFarTooLargeAreNotEdited(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	pod.Spec.Containers = make([]corev1.Container, 1000)
	if _, err := fieldsOf(pod); err != nil {
		t.Error(err)
	}
	pod.Spec.Containers = make([]corev1.Container, 100_000)
	if _, err := fieldsOf(pod); err == nil || !strings.Contains(err.Error(), fmt.Sprint(jsonvalue.MaxValues)) {
		t.Errorf("got %v", err)
	}
}
