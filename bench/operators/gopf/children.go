package main

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/widget"
)

// declareChildren declares a ConfigMap, a Secret and a Service for each object.
func declareChildren(widgets *gopf.Resource[*widget.Widget], counter *proto.Counter) {
	widgets.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*widget.Widget]) error {
		counter.CalledOnce(string(r.Object.UID))
		config := &corev1.ConfigMap{Data: map[string]string{"size": strconv.FormatInt(r.Object.Spec.Size, 10)}}
		secret := &corev1.Secret{Data: map[string][]byte{"group": []byte(r.Object.Spec.Group)}}
		service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "web", Port: 80}}}}
		config.Name, secret.Name, service.Name = r.Object.Name, r.Object.Name, r.Object.Name
		gopf.Want(r, config)
		gopf.Want(r, secret)
		gopf.Want(r, service)
		return nil
	}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*corev1.Secret](), gopf.Owns[*corev1.Service]())
}
