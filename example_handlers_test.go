package gopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

func Example() {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		fmt.Println("And here we are:", c.Object.GetName())
		c.SetResult(map[string]string{"message": "hello world"}) // will be in the status
		return nil
	})

	d := start(op) // in a program: cli.Main(op)
	d.create("a", `{}`)
	fmt.Println(d.handled("a")["status"])
	d.stop()
	// Output:
	// And here we are: a
	// map[create_fn:map[message:hello world]]
}

// Shop is the Go type of a custom resource. It needs no generated code.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Town  string   `json:"town"`
		Goods []string `json:"goods"`
	} `json:"spec"`
	Status struct {
		Open bool `json:"open"`
	} `json:"status"`
}

func ExampleFor() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnCreate("open", func(_ context.Context, c *gopf.Change[*Shop]) error {
		fmt.Printf("A shop opens in %s.\n", c.Object.Spec.Town)
		c.Patch.Set("status.open", true)
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel"}}`)
	fmt.Println(d.handled("a")["status"])
	d.stop()
	// Output:
	// A shop opens in Kiel.
	// map[open:true]
}

func ExampleResource_OnUpdate() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnUpdate("update", func(_ context.Context, c *gopf.Change[*Shop]) error {
		fmt.Println("before:", c.Old.Spec.Town, c.Old.Spec.Goods)
		fmt.Println("now:", c.Object.Spec.Town, c.Object.Spec.Goods)
		for _, item := range c.Diff {
			fmt.Println(item.Op, item.Path, item.Old, item.New)
		}
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel", "goods": ["fish"]}}`)
	d.handled("a")
	d.patch("a", `{"spec": {"goods": ["fish", "rope"]}}`)
	d.handled("a")
	d.stop()
	// Output:
	// before: Kiel [fish]
	// now: Kiel [fish rope]
	// change [spec goods] [fish] [fish rope]
}

func ExampleResource_OnField() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnField("move", "spec.town", func(_ context.Context, c *gopf.Change[*Shop]) error {
		before, _ := c.OldValue()
		fmt.Println(c.Reason, before, "->", c.Object.Spec.Town)
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel"}}`)
	d.handled("a")
	d.patch("a", `{"spec": {"town": "Bremen"}}`)
	d.handled("a")
	d.stop()
	// Output:
	// create <nil> -> Kiel
	// update Kiel -> Bremen
}

func ExampleResource_OnDelete() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnDelete("close", func(_ context.Context, c *gopf.Change[*Shop]) error {
		fmt.Println("The shop closes for good.")
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel"}}`)
	fmt.Println(d.handled("a")["metadata"].(map[string]any)["finalizers"])
	d.delete("a") // the deletion waits for the handler
	fmt.Println("It is gone.")
	d.stop()
	// Output:
	// [kopf.zalando.org/KopfFinalizerMarker]
	// The shop closes for good.
	// It is gone.
}

func ExampleResource_WithLabel() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	large := shops.WithLabel("size", gopf.Is("large"))
	large.OnCreate("guard", func(_ context.Context, c *gopf.Change[*Shop]) error {
		fmt.Println(c.Object.Name, "needs a guard")
		return nil
	})
	large.When(func(s *gopf.Candidate[*Shop]) bool { return s.Object.Spec.Town == "Kiel" }).
		OnCreate("quay", func(_ context.Context, c *gopf.Change[*Shop]) error {
			fmt.Println(c.Object.Name, "needs a quay")
			return nil
		})
	shops.OnCreate("count", func(context.Context, *gopf.Change[*Shop]) error { return nil })

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel"}}`)
	d.handled("a")
	d.create("b", `{"metadata": {"labels": {"size": "large"}}, "spec": {"town": "Kiel"}}`)
	d.handled("b")
	d.create("c", `{"metadata": {"labels": {"size": "large"}}, "spec": {"town": "Bremen"}}`)
	d.handled("c")
	d.stop()
	// Output:
	// b needs a guard
	// b needs a quay
	// c needs a guard
}

func ExampleRetryAfter() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnCreate("deliver", func(_ context.Context, c *gopf.Change[*Shop]) error {
		if c.Retry < 2 {
			fmt.Println("attempt", c.Retry)
			return gopf.RetryAfter(10*time.Millisecond, errors.New("the shop is closed"))
		}
		fmt.Println("delivered")
		return nil
	}, gopf.MaxAttempts(5))

	d := start(op)
	d.create("a", `{}`)
	d.handled("a")
	d.stop()
	// Output:
	// attempt 0
	// attempt 1
	// delivered
}

func ExamplePermanent() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnCreate("check", func(_ context.Context, c *gopf.Change[*Shop]) error {
		fmt.Println("called")
		if len(c.Object.Spec.Goods) == 0 {
			return gopf.Permanent(errors.New("there is nothing to sell"))
		}
		return nil
	})

	d := start(op)
	d.create("a", `{}`)
	d.handled("a") // the failure is logged and not retried
	d.stop()
	// Output: called
}

func ExampleChange_Sub() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnCreate("stock", func(_ context.Context, c *gopf.Change[*Shop]) error {
		for _, good := range c.Object.Spec.Goods {
			c.Sub(good, func(_ context.Context, c *gopf.Change[*Shop]) error {
				if good == "rope" && c.Retry == 0 {
					return gopf.RetryAfter(10*time.Millisecond, errors.New("sold out"))
				}
				fmt.Println("There is", good)
				return nil
			})
		}
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"goods": ["rope", "fish"]}}`)
	d.handled("a")
	d.stop()
	// Output:
	// There is fish
	// There is rope
}

func ExamplePatch_Edit() {
	op := gopf.New()
	shops := gopf.For[*Shop](op, "kopf.dev/v1/kopfexamples")
	shops.OnCreate("default", func(_ context.Context, c *gopf.Change[*Shop]) error {
		c.Patch.Label("checked", "yes")
		c.Patch.Edit(func(s *Shop) { s.Spec.Goods = append(s.Spec.Goods, "postcards") })
		return nil
	})

	d := start(op)
	d.create("a", `{"spec": {"town": "Kiel", "goods": ["fish"], "opened": 1901}}`)
	shop := d.handled("a")
	fmt.Println(shop["spec"], shop["metadata"].(map[string]any)["labels"])
	d.stop()
	// Output: map[goods:[fish postcards] opened:1901 town:Kiel] map[checked:yes]
}
