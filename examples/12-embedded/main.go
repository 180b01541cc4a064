// Command 12-embedded is an application that runs an operator in a goroutine, next to
// its other work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf"
	"gopf.dev/gopf/logs"
)

// greeter is the state that the handlers share with the application.
type greeter struct {
	hello, goodbye string // formats with the object's name; set by the application
	greeted        atomic.Int64
}

func (g *greeter) operator() *gopf.Operator {
	op := gopf.New()
	objects := op.Resource("kopfexamples")
	objects.OnCreate("create_fn", g.create)
	objects.OnDelete("delete_fn", g.delete)
	return op
}

func (g *greeter) create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	g.greeted.Add(1)
	c.Log.Info(fmt.Sprintf(g.hello, c.Object.GetName()))
	return nil
}

func (g *greeter) delete(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Log.Info(fmt.Sprintf(g.goodbye, c.Object.GetName()))
	return nil
}

const steps = 3

func main() {
	namespace := flag.String("namespace", "default", "namespace in which objects are created and handled")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *namespace); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, namespace string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}

	// The operator runs until its context is done.
	fmt.Println("The application starts.")
	g := &greeter{hello: "Hello, %s!", goodbye: "Good bye, %s!"}
	serving, finish := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- g.operator().Run(serving,
			gopf.Cluster(config),
			gopf.Namespaces(namespace),
			gopf.Log(slog.New(logs.New(os.Stderr, logs.Options{Format: logs.Full, Prefix: true, Level: slog.LevelDebug}))),
			gopf.WhenReady(func() { close(ready) }),
		)
	}()

	select {
	case <-ready:
		err = work(ctx, config, namespace, g)
	case err := <-ended: // before it was ready
		finish()
		return err
	}

	fmt.Println("The application stops its operator.")
	finish()
	err = errors.Join(err, <-ended)
	fmt.Println("Objects greeted:", g.greeted.Load())
	return err
}

// work is the application's own work: it creates and deletes some objects. It tolerates
// objects that an earlier run left behind.
func work(ctx context.Context, config *rest.Config, namespace string, g *greeter) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	objects := client.Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}).Namespace(namespace)
	for step := range steps {
		fmt.Printf("The application works: step %d of %d.\n", step+1, steps)
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("kopf.dev/v1")
		object.SetKind("KopfExample")
		object.SetName(fmt.Sprintf("kopf-example-%d", step))
		if _, err := objects.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		await(ctx, func() bool { return g.greeted.Load() > int64(step) })
		if err := objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		await(ctx, func() bool {
			_, err := objects.Get(ctx, object.GetName(), metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	return nil
}

// await returns when done returns true, after half a minute, or when ctx is done.
func await(ctx context.Context, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
