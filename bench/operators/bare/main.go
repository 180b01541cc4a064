// Command bare does only the requests that every operator needs, with client-go. It is the
// baseline for operators.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/widget"
)

// writers is the number of parallel requests.
const writers = 32

func main() {
	resource := flag.String("resource", "widgets", "what to do it with")
	does := flag.String("does", "", "what to do: list, watch, or patch with the number of objects, like patch=1000")
	flag.Parse()
	if err := run(*resource, *does); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(resource, does string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	b := &bare{objects: api.Resource(widget.Resource(resource)), counter: &proto.Counter{}}
	told := make(chan struct{})
	ctx := proto.Serve(b.counter, map[string]func() any{"go": func() any { close(told); return proto.Stats{} }})
	var count int
	switch does {
	case "list":
		err = b.list(ctx)
	case "watch":
		err = b.watch(ctx)
	default:
		if _, err = fmt.Sscanf(does, "patch=%d", &count); err == nil {
			<-told
			err = b.patch(ctx, count)
		}
	}
	if err != nil && ctx.Err() == nil {
		b.counter.Fail(err)
	}
	<-ctx.Done()
	return nil
}

type bare struct {
	objects dynamic.NamespaceableResourceInterface
	counter *proto.Counter
}

// list reads all objects in pages.
func (b *bare) list(ctx context.Context) error {
	o := metav1.ListOptions{Limit: 500}
	for {
		page, err := b.objects.List(ctx, o)
		if err != nil {
			return err
		}
		for range page.Items {
			b.counter.Seen()
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			b.counter.Called(0)
			return nil
		}
	}
}

// watch records when changes arrive.
func (b *bare) watch(ctx context.Context) error {
	page, err := b.objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w, err := b.objects.Watch(ctx, metav1.ListOptions{ResourceVersion: page.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	b.counter.Seen()
	for e := range w.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the watch was ended: %v", e.Object)
		}
		stamp, _, _ := unstructured.NestedInt64(o.Object, "spec", "stamp")
		b.counter.Called(stamp)
	}
	return errors.New("the watch has ended")
}

// patch makes the two writes of a handled creation for every object: the result in the
// status, and the essence of the object in an annotation.
func (b *bare) patch(ctx context.Context, count int) error {
	base, err := noted()
	if err != nil {
		return err
	}
	names := make(chan string)
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for name := range names {
				if err := b.write(ctx, name, base); err != nil {
					b.counter.Fail(err)
				}
			}
		})
	}
	for i := range count {
		names <- fmt.Sprintf("o-%07d", i)
	}
	close(names)
	wait.Wait()
	return nil
}

func (b *bare) write(ctx context.Context, name string, base []byte) error {
	objects := b.objects.Namespace("default")
	status := []byte(`{"status":{"create":{"message":"created","size":1}}}`)
	if _, err := objects.Patch(ctx, name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	if _, err := objects.Patch(ctx, name, types.MergePatchType, base, metav1.PatchOptions{}); err != nil {
		return err
	}
	b.counter.Called(0)
	return nil
}

// noted returns a patch with the essence of an object.
func noted() ([]byte, error) {
	spec, err := json.Marshal(map[string]any{"spec": widget.Spec{Group: "g", Payload: widget.Payload(10, 1), Size: 1}})
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{"kopf.zalando.org/last-handled-configuration": string(spec)}
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
}
