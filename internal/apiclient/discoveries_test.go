package apiclient

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// cluster is an API server whose discovery takes a second.
type cluster struct {
	API
	has         []kind.Info
	err         error
	discoveries int // that began
	canceled    int
}

func (c *cluster) Discover(ctx context.Context, _ ...string) (kube.Discovery, error) {
	c.discoveries++
	found, err := c.has, c.err
	select {
	case <-time.After(time.Second):
		return kube.Discovery{Resources: found}, err
	case <-ctx.Done():
		c.canceled++
		return kube.Discovery{}, ctx.Err()
	}
}

func (c *cluster) check(t *testing.T, discoveries int) {
	t.Helper()
	if c.discoveries != discoveries {
		t.Errorf("%d discoveries, want %d", c.discoveries, discoveries)
	}
}

// objects returns a client of an operator that knows no resource.
func (c *cluster) objects() *Objects {
	return &Objects{API: c, Known: known(), Shared: &Discoveries{Discover: c.Discover}}
}

var widget = schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "Widget"}

func isUnknown(err error) bool {
	_, ok := err.(*UnknownError)
	return ok
}

// A tenant can name thousands of kinds that do not exist.
func TestLookupsOfUnknownKindsShareOneDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		o := c.objects()
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				time.Sleep(time.Duration(n) * 9 * time.Millisecond)
				if _, err := o.ByKind(t.Context(), widget); !isUnknown(err) {
					t.Errorf("got %v", err)
				}
				if _, err := o.Select(t.Context(), kind.Named("gadgets")); !isUnknown(err) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		c.check(t, 1)
		c.has = []kind.Info{widgets}
		time.Sleep(lasting)
		if i, err := o.ByKind(t.Context(), widget); err != nil || i.GVR() != widgets.GVR() {
			t.Errorf("got %v, %v", i, err)
		}
		c.check(t, 2)
	})
}

func TestANewKindIsFoundAfterAChangeOfTheResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		o := c.objects()
		early := make(chan error)
		go func() {
			_, err := o.ByKind(t.Context(), widget)
			early <- err
		}()
		synctest.Wait()
		c.has = []kind.Info{widgets}
		o.Shared.Forget() // while the first discovery runs
		if _, err := o.ByKind(t.Context(), widget); err != nil {
			t.Error(err)
		}
		if err := <-early; !isUnknown(err) {
			t.Errorf("got %v", err)
		}
		if _, err := o.ByKind(t.Context(), widget); err != nil {
			t.Error(err)
		}
		c.check(t, 2)
	})
}

func (c *cluster) Create(context.Context, kube.Target, []byte, ...kube.Param) (*object.Body, error) {
	c.has = []kind.Info{widgets}
	return nil, nil
}

func TestAKindThatAHandlerInstallsIsFoundAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		o := c.objects()
		if _, err := o.ByKind(t.Context(), widget); !isUnknown(err) {
			t.Errorf("got %v", err)
		}
		definitions := kube.Target{Info: kind.Info{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}}
		if _, err := o.Create(t.Context(), definitions, map[string]any{}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.ByKind(t.Context(), widget); err != nil {
			t.Error(err)
		}
	})
}

func TestALookupThatGivesUpDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{has: []kind.Info{widgets}}
		o := c.objects()
		first, cancel := context.WithCancel(t.Context())
		gaveUp, other := make(chan error), make(chan error)
		look := func(ctx context.Context, result chan error) {
			_, err := o.ByKind(ctx, widget)
			result <- err
		}
		go look(first, gaveUp)
		synctest.Wait()
		go look(t.Context(), other)
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
		c.check(t, 1)
		o.Shared.Forget()
		second, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go look(second, gaveUp)
		if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if synctest.Wait(); c.canceled != 1 {
			t.Error("a discovery that no lookup waits for continues")
		}
		go look(t.Context(), other)
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

func TestAFailedDiscoveryIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{err: errWorld}
		o := c.objects()
		if _, err := o.ByKind(t.Context(), widget); !errors.Is(err, errWorld) {
			t.Errorf("got %v", err)
		}
		c.has, c.err = []kind.Info{widgets}, nil
		if _, err := o.ByKind(t.Context(), widget); err != nil {
			t.Error(err)
		}
	})
}

// A caller that learns of an object must not conclude from an earlier discovery that the
// object does not exist.
func TestALookupWaitsForADiscoveryThatBeganLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		o := c.objects()
		if _, err := o.ByKind(t.Context(), widget); !isUnknown(err) {
			t.Errorf("got %v", err)
		}
		c.has = []kind.Info{widgets}
		time.Sleep(3 * time.Second)
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				paused := time.Duration(0)
				ctx := kube.WithPauses(t.Context(), func(pause func()) {
					at := time.Now()
					pause()
					paused += time.Since(at)
				})
				l := &Lookup{Objects: o, Kinds: []schema.GroupVersionKind{widget}, Since: began}
				if _, err := l.ByKind(ctx, widget); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > lasting || paused != took {
					t.Errorf("the lookup took %v, and paused for %v", took, paused)
				}
				if _, err := l.ByKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "None"}); !isUnknown(err) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		c.check(t, 2)
		l := &Lookup{Objects: o, Kinds: []schema.GroupVersionKind{widget}, Since: time.Now()}
		if _, err := l.ByKind(t.Context(), widget); err != nil { // an earlier discovery has it
			t.Error(err)
		}
		c.check(t, 2)
	})
}

func TestAStoppingOperatorDoesNotWaitForTheNextDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stopping := &cluster{}, make(chan struct{})
		o := c.objects()
		o.Shared.Stopping = stopping
		if _, err := o.ByKind(t.Context(), widget); !isUnknown(err) {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Second, func() { close(stopping) })
		began := time.Now()
		_, err := (&Lookup{Objects: o, Kinds: []schema.GroupVersionKind{widget}, Since: began}).ByKind(t.Context(), widget)
		if !errors.Is(err, errStopping) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}
