package gopf_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/hierarchy"
)

func ExampleResource_Daemon() {
	begun := make(chan struct{})
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.Daemon("keep", func(ctx context.Context, d *gopf.Daemon[*Shop]) error {
		fmt.Println("The keeper arrives at", d.Object.Name)
		close(begun)
		<-ctx.Done() // until the shop is deleted, or the operator stops
		fmt.Println("The keeper leaves:", context.Cause(ctx))
		return nil
	})

	d := start(op)
	d.create("a", `{}`)
	<-begun
	d.delete("a")
	d.stop()
	// Output:
	// The keeper arrives at a
	// The keeper leaves: the object is being deleted
}

func ExampleResource_Timer() {
	rung := make(chan struct{})
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.Timer("bell", time.Hour, func(_ context.Context, t *gopf.Tick[*Shop]) error {
		memo := gopf.Memo[sales](t)
		if memo.days++; memo.days == 1 {
			t.Next(10 * time.Millisecond) // rather than in an hour
		}
		fmt.Println("The bell of", t.Object.Name, "rings:", memo.days)
		rung <- struct{}{}
		return nil
	}, gopf.Optional()) // deletions do not wait for it

	d := start(op)
	d.create("a", `{}`)
	<-rung
	<-rung
	d.stop()
	// Output:
	// The bell of a rings: 1
	// The bell of a rings: 2
}

func ExampleResource_OnEvent() {
	seen := make(chan string)
	op := gopf.New()
	gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples").OnEvent("watch", func(_ context.Context, e *gopf.WatchEvent[*Shop]) error {
		seen <- e.Type + " " + e.Object.Spec.Town
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel"}}`)
	fmt.Println(strings.TrimPrefix(<-seen, "ADDED ")) // it has no type if it was listed
	d.patch("a", `{"spec": {"town": "Bremen"}}`)
	fmt.Println(<-seen)
	d.delete("a")
	fmt.Println(<-seen)
	d.stop()
	// Output:
	// Kiel
	// MODIFIED Bremen
	// DELETED Bremen
}

func ExampleIndex() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	byGood := gopf.Index(shops, "by-good", func(_ context.Context, s *gopf.Subject[*Shop]) (map[string]string, error) {
		found := map[string]string{}
		for _, good := range s.Object.Spec.Goods {
			found[good] = s.Object.Name
		}
		return found, nil
	})
	shops.OnCreate("compare", func(_ context.Context, c *gopf.Change[*Shop]) error {
		for _, good := range c.Object.Spec.Goods {
			fmt.Println(good, "is sold by", slices.Sorted(byGood.Get(good)))
		}
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"goods": ["fish"]}}`)
	d.handled("a")
	d.create("b", `{"spec": {"goods": ["fish", "rope"]}}`)
	d.handled("b")
	d.stop()
	// Output:
	// fish is sold by [a]
	// fish is sold by [a b]
	// rope is sold by [b]
}

// sales is the memo of a shop. Daemons and timers must use the mutex.
type sales struct {
	mu   sync.Mutex
	days int
}

func ExampleMemo() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.On(gopf.Create|gopf.Update, "count", func(_ context.Context, c *gopf.Change[*Shop]) error {
		memo := gopf.Memo[sales](c)
		memo.mu.Lock()
		defer memo.mu.Unlock()
		memo.days++
		fmt.Println("day", memo.days)
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel"}}`)
	d.handled("a")
	d.patch("a", `{"spec": {"town": "Bremen"}}`)
	d.handled("a")
	d.stop()
	// Output:
	// day 1
	// day 2
}

func ExampleSubject_Adopt() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnCreate("till", func(ctx context.Context, c *gopf.Change[*Shop]) error {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "till", Image: "busybox"}}}}
		if err := c.Adopt(pod, hierarchy.Strict()); err != nil {
			return gopf.Permanent(err)
		}
		if err := c.API.Create(ctx, pod); err != nil {
			return err
		}
		fmt.Printf("%s/%s belongs to %s %s\n", pod.Namespace, pod.Name, pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name)
		return nil
	})

	d := start(op)
	d.create("a", `{}`)
	d.handled("a")
	d.stop()
	// Output: default/a belongs to KopfExample a
}

func ExampleOperator_OnStartup() {
	op := gopf.New()
	op.OnStartup("configure", func(_ context.Context, a *gopf.Activity) error {
		a.Settings.Execution.DefaultBackoff = 10 * time.Second
		fmt.Println("starting")
		return nil
	})
	op.OnCleanup("report", func(context.Context, *gopf.Activity) error {
		fmt.Println("stopped")
		return nil
	})

	d := start(op)
	d.stop()
	// Output:
	// starting
	// stopped
}

func ExampleOperator_Err() {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create", nil)
	if wrong, ok := errors.AsType[*gopf.DeclarationError](op.Err()); ok {
		for _, problem := range wrong.Problems {
			_, what, _ := strings.Cut(problem.Error(), ": ") // after the file and the line
			fmt.Println(what)
		}
	}
	// Output: handler "create" has no function
}

// A program can run an operator without package cli. It stops when its context is done.
func ExampleOperator_Run() {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := op.Run(ctx, gopf.Namespaces("team-*,!team-test")); err != nil {
		fmt.Println(err)
	}
}
