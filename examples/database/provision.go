package main

import (
	"context"
	"crypto/rand"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
)

// provision creates or updates all children to match the spec. It may be called at any
// time. It returns the StatefulSet as stored by the API server.
func provision(ctx context.Context, s *gopf.Subject[*Database]) (*appsv1.StatefulSet, error) {
	set := statefulSet(s.Object)
	existing, err := findSet(ctx, s)
	if err != nil {
		return nil, err
	}
	if existing != nil && len(existing.Spec.VolumeClaimTemplates) > 0 { // the API server rejects changes of templates
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = templateSize(existing)
	}
	if err := createOnce(ctx, s, password(s.Object, rand.Text())); err != nil {
		return nil, err
	}
	if err := apply(ctx, s, service(s.Object)); err != nil {
		return nil, err
	}
	if err := apply(ctx, s, set); err != nil {
		return nil, err
	}
	if s.Object.Spec.BackupEnabled {
		return set, enableBackups(ctx, s)
	}
	return set, nil
}

func enableBackups(ctx context.Context, s *gopf.Subject[*Database]) error {
	if err := createOnce(ctx, s, backupVolume(s.Object)); err != nil {
		return err
	}
	return apply(ctx, s, backupJob(s.Object))
}

// findSet reads the StatefulSet of a database. nil means that it does not exist.
func findSet(ctx context.Context, s *gopf.Subject[*Database]) (*appsv1.StatefulSet, error) {
	set, err := client.Get[*appsv1.StatefulSet](ctx, s.API, childName(s.Object))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return set, nil
}

// pendingAction returns the manual step that a change of the storage size requires, or
// "". Kubernetes does not resize the PVCs of a StatefulSet when its template changes.
func pendingAction(ctx context.Context, s *gopf.Subject[*Database], set *appsv1.StatefulSet) (string, error) {
	wanted := resource.MustParse(s.Object.Spec.Storage)
	if size := templateSize(set); size.Cmp(wanted) == 0 {
		return "", nil
	}
	pending := "Resize storage to " + s.Object.Spec.Storage
	for i := range s.Object.Spec.Replicas {
		name := fmt.Sprintf("%s-%s-%d", dataVolume, set.Name, i)
		claim, err := client.Get[*corev1.PersistentVolumeClaim](ctx, s.API, name)
		switch {
		case apierrors.IsNotFound(err):
			return pending, nil
		case err != nil:
			return "", err
		case claim.Spec.Resources.Requests.Storage().Cmp(wanted) != 0:
			return pending, nil
		}
	}
	return "", nil
}

func templateSize(set *appsv1.StatefulSet) resource.Quantity {
	for _, template := range set.Spec.VolumeClaimTemplates {
		if template.Name == dataVolume {
			return template.Spec.Resources.Requests[corev1.ResourceStorage]
		}
	}
	return resource.Quantity{}
}

// apply creates or updates a child with server-side apply, and stores the response in
// child. Fields that child does not set keep their values.
func apply(ctx context.Context, s *gopf.Subject[*Database], child gopf.Object) error {
	if err := s.Adopt(child); err != nil {
		return err
	}
	return s.API.Apply(ctx, child, client.Force()) // its errors name the child
}

// createOnce creates a child if it does not exist, and never updates it. It is for the
// password, and for the backup volume, whose size the API server restricts.
func createOnce(ctx context.Context, s *gopf.Subject[*Database], child gopf.Object) error {
	if err := s.Adopt(child); err != nil {
		return err
	}
	if err := s.API.Create(ctx, child); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
