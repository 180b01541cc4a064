package p

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
)

type DNS interface {
	Add(ctx context.Context, host string) error
	Remove(ctx context.Context, host string) error
}

func deploymentFor(site *Website) *appsv1.Deployment { return &appsv1.Deployment{} }
