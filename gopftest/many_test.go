package gopftest

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// With many concurrent writers and watchers, every watcher receives every change of every
// object, in order, with the versions from the responses.
func TestManyWritersAndWatchers(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		const writers, watchers, changes = 20, 5, 10
		kex := client(t, c)
		seen := make([]map[string][]string, watchers)
		var watching, writing sync.WaitGroup
		for i := range watchers {
			w, err := kex.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			seen[i] = map[string][]string{}
			watching.Go(func() {
				for range writers * (changes + 1) {
					obj := (<-w.ResultChan()).Object.(*unstructured.Unstructured)
					seen[i][obj.GetName()] = append(seen[i][obj.GetName()], obj.GetResourceVersion())
				}
			})
		}
		answers := make([][]string, writers)
		for i := range writers {
			writing.Go(func() {
				obj, err := kex.Create(t.Context(), example(fmt.Sprint("x", i)), metav1.CreateOptions{})
				for n := 0; err == nil; n++ {
					answers[i] = append(answers[i], obj.GetResourceVersion())
					if n == changes {
						return
					}
					obj, err = mergePatch(t.Context(), kex, obj.GetName(), fmt.Sprintf(`{"spec":{"n":%d}}`, n))
				}
				t.Error(err)
			})
		}
		writing.Wait()
		watching.Wait()
		synctest.Wait()
		for i := range watchers {
			for j := range writers {
				if got, want := fmt.Sprint(seen[i][fmt.Sprint("x", j)]), fmt.Sprint(answers[j]); got != want {
					t.Errorf("watcher %d saw of %d: %s, want %s", i, j, got, want)
				}
			}
		}
	})
}
