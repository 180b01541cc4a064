package gopftest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

func TestClientsWatchInVirtualTime(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		w, err := client(t, c).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		start := time.Now()
		go func() {
			time.Sleep(12 * time.Minute)
			c.Create(t, example("a"))
		}()
		ev := <-w.ResultChan()
		if ev.Object.(*unstructured.Unstructured).GetName() != "a" || time.Since(start) != 12*time.Minute {
			t.Errorf("got %v after %v", ev, time.Since(start))
		}
	})
}

func TestBookmarksComeEveryMinuteAndBeforeTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		lines := follow(t, c, "allowWatchBookmarks=true&timeoutSeconds=130&"+now(c))
		for _, step := range []struct {
			until time.Duration
			want  []string
		}{
			{59 * time.Second, []string{}},
			{61 * time.Second, []string{"BOOKMARK"}},
			{121 * time.Second, []string{"BOOKMARK"}},
			{129 * time.Second, []string{"BOOKMARK"}},
			{131 * time.Second, []string{"end"}},
		} {
			time.Sleep(step.until - time.Since(time.Unix(946684800, 0)))
			if diff := cmp.Diff(step.want, drain(lines)); diff != "" {
				t.Errorf("until %v: -want, +got:\n%s", step.until, diff)
			}
		}
	})
}

func TestWatchesWithoutATimeoutEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		lines := follow(t, c, now(c))
		time.Sleep(44 * time.Minute)
		if got := drain(lines); len(got) != 0 {
			t.Errorf("too early: %v", got)
		}
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]string{"end"}, drain(lines)); diff != "" {
			t.Error(diff)
		}
	})
}

// Informers list by a watch, reconnect, and list again after an expiry.
func TestInformersStayInSync(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		d := dynamic.NewForConfigOrDie(c.RESTConfig())
		informer := dynamicinformer.NewFilteredDynamicInformer(d, schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"},
			"", 0, cache.Indexers{}, nil).Informer()
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() { defer close(done); informer.Run(stop) }()

		for _, disturb := range []func(){
			func() {},
			func() { c.Create(t, example("b")) },
			func() { c.CutStreams(); c.Create(t, example("c")) },
			func() { time.Sleep(3 * time.Hour) },
			func() {
				c.Patch(t, examples, "default", "a", `{"spec":{"field":"changed"}}`)
				c.Expire()
				c.CutStreams()
			},
			func() { c.Delete(t, examples, "default", "b") },
			func() { c.CutStreams(); c.Delete(t, examples, "default", "c"); c.Expire() },
		} {
			disturb()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			var want, got []string
			for _, obj := range c.List(t, examples, "") {
				want = append(want, obj.GetName()+" "+obj.GetResourceVersion())
			}
			for _, key := range []string{"default/a", "default/b", "default/c"} {
				if obj, ok, _ := informer.GetStore().GetByKey(key); ok {
					u := obj.(*unstructured.Unstructured)
					got = append(got, u.GetName()+" "+u.GetResourceVersion())
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-cluster, +informer:\n%s", diff)
			}
		}
		close(stop)
		<-done
	})
}
