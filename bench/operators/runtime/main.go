// Command runtime is the measured operator, written with controller-runtime according to its
// documentation: one reconciler, a generation predicate, patches of the status, no
// managedFields in the cache, and no client-side rate limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/widget"
)

// workers is the number of parallel reconciliations. The default of 1 would not be
// comparable.
const workers = 32

func main() {
	resource := flag.String("resource", "widgets", "what to handle")
	does := flag.String("does", "create", "what to do: create, update, delete; separated by commas; or only validate or children")
	typed := flag.Bool("typed", false, "decode objects into a Go type")
	port := flag.Int("port", 0, "of the webhook server")
	certificates := flag.String("certificates", "", "the folder of the webhook server's certificate")
	flag.Parse()
	hooks := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates})
	if err := run(*resource, *does, *typed, hooks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(resource, does string, typed bool, hooks webhook.Server) error {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	kind := widget.GroupVersion.WithKind(widget.Kinds[resource])
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        scheme(kind),
		Metrics:       server.Options{BindAddress: "0"},
		Cache:         cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		WebhookServer: hooks,
		Client:        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	counter := &proto.Counter{}
	if does == "validate" {
		if err := ctrl.NewWebhookManagedBy(mgr, &widget.Widget{}).WithValidator(validator{counter}).WithValidatorCustomPath("/validate").Complete(); err != nil {
			return err
		}
		return mgr.Start(proto.Serve(counter, nil))
	}
	if does == "children" {
		if err := manageChildren(mgr, counter); err != nil {
			return err
		}
		return mgr.Start(proto.Serve(counter, nil))
	}
	base := reconciler{Client: mgr.GetClient(), counter: counter, deletes: strings.Contains(does, "delete")}
	var of client.Object
	var r interface {
		Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
	}
	if typed {
		of, r = &widget.Widget{}, &typedReconciler{base}
	} else {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		of, r = u, &plainReconciler{base, kind}
	}
	// Changes of only the metadata matter only for deletions.
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetDeletionTimestamp() != nil
	}))
	err = ctrl.NewControllerManagedBy(mgr).For(of, builder.WithPredicates(changed)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
	if err != nil {
		return err
	}
	return mgr.Start(proto.Serve(counter, nil))
}

// validator denies objects of a negative size.
type validator struct{ counter *proto.Counter }

func (v validator) ValidateCreate(_ context.Context, w *widget.Widget) (admission.Warnings, error) {
	v.counter.Called(0)
	if w.Spec.Size < 0 {
		return nil, errors.New("the size is negative")
	}
	return nil, nil
}

func (v validator) ValidateUpdate(ctx context.Context, _, w *widget.Widget) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, w)
}

func (v validator) ValidateDelete(context.Context, *widget.Widget) (admission.Warnings, error) {
	return nil, nil
}

func scheme(kind schema.GroupVersionKind) *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(kind, &widget.Widget{})
	s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &widget.List{})
	metav1.AddToGroupVersion(s, kind.GroupVersion())
	if err := corev1.AddToScheme(s); err != nil {
		panic(err) // it only fails for conflicting types
	}
	return s
}

// finalizer blocks deletions.
const finalizer = "bench.gopf.dev/runtime"

type reconciler struct {
	client.Client
	counter *proto.Counter
	deletes bool
}

// guard adds or removes the finalizer. done means that there is nothing else to do.
func (r *reconciler) guard(ctx context.Context, o client.Object) (done bool, err error) {
	if !r.deletes {
		return false, nil
	}
	has := len(o.GetFinalizers()) > 0
	before := o.DeepCopyObject().(client.Object)
	switch {
	case o.GetDeletionTimestamp() == nil && !has:
		o.SetFinalizers([]string{finalizer})
		return false, r.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	case o.GetDeletionTimestamp() != nil && has:
		r.counter.Called(0)
		o.SetFinalizers(nil)
		return true, r.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	return o.GetDeletionTimestamp() != nil, nil
}

type typedReconciler struct{ reconciler }

func (r *typedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.counter.Seen()
	var w widget.Widget
	if err := r.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if done, err := r.guard(ctx, &w); done || err != nil {
		return ctrl.Result{}, err
	}
	if w.Status.ObservedGeneration == w.Generation {
		return ctrl.Result{}, nil
	}
	r.counter.Called(w.Spec.Stamp)
	before := w.DeepCopy()
	w.Status.ObservedGeneration = w.Generation
	w.Status.Create = &widget.Result{Message: "created", Size: w.Spec.Size}
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, &w, client.MergeFrom(before)))
}

type plainReconciler struct {
	reconciler
	kind schema.GroupVersionKind
}

func (r *plainReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.counter.Seen()
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(r.kind)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if done, err := r.guard(ctx, w); done || err != nil {
		return ctrl.Result{}, err
	}
	if observed, _, _ := unstructured.NestedInt64(w.Object, "status", "observedGeneration"); observed == w.GetGeneration() {
		return ctrl.Result{}, nil
	}
	stamp, _, _ := unstructured.NestedInt64(w.Object, "spec", "stamp")
	size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
	r.counter.Called(stamp)
	before := w.DeepCopy()
	status := map[string]any{
		"observedGeneration": w.GetGeneration(),
		"create":             map[string]any{"message": "created", "size": size},
	}
	if err := unstructured.SetNestedMap(w.Object, status, "status"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, w, client.MergeFrom(before)))
}
