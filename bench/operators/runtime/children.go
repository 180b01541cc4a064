package main

import (
	"context"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/widget"
)

// childrenReconciler gives each object a ConfigMap, a Secret and a Service, and reports
// that in a condition.
type childrenReconciler struct {
	client.Client
	scheme  *runtime.Scheme
	counter *proto.Counter
}

func (r *childrenReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w widget.Widget
	if err := r.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.counter.CalledOnce(string(w.UID))
	if w.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	at := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	config := &corev1.ConfigMap{ObjectMeta: at}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		if config.Data == nil {
			config.Data = map[string]string{}
		}
		maps.Copy(config.Data, map[string]string{"size": strconv.FormatInt(w.Spec.Size, 10)})
		return controllerutil.SetControllerReference(&w, config, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	secret := &corev1.Secret{ObjectMeta: at}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data["group"] = []byte(w.Spec.Group)
		return controllerutil.SetControllerReference(&w, secret, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: at}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Spec.ClusterIP = corev1.ClusterIPNone
		if len(service.Spec.Ports) != 1 {
			service.Spec.Ports = make([]corev1.ServicePort, 1)
		}
		service.Spec.Ports[0].Name, service.Spec.Ports[0].Port = "web", 80
		return controllerutil.SetControllerReference(&w, service, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := w.DeepCopy()
	w.Status.ObservedGeneration = w.Generation
	changed := meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "ChildrenReady", Message: "All children are ready.", ObservedGeneration: w.Generation,
	})
	if !changed && before.Status.ObservedGeneration == w.Generation {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, &w, client.MergeFrom(before)))
}

// manageChildren adds the reconciler to the manager.
func manageChildren(mgr ctrl.Manager, counter *proto.Counter) error {
	r := &childrenReconciler{mgr.GetClient(), mgr.GetScheme(), counter}
	return ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
}
