package metacontroller

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// manyMaps returns a list that needs 361 bytes of memory for each of its maps, and 8 as JSON.
func manyMaps(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"a": int64(1)}
	}
	return list
}

func TestTheFootprintOfAValueIsCloseToItsMemory(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	keys := make([]string, 20_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"key-%d":"value"`, i)
	}
	for name, text := range map[string]string{
		"maps": "[" + strings.Repeat(`{"a":1},`, 50_000) + "1]", "empty maps": "[" + strings.Repeat(`{},`, 100_000) + "1]",
		"lists": "[" + strings.Repeat(`[1],`, 100_000) + "1]", "numbers": "[" + strings.Repeat(`1234,`, 200_000) + "1]",
		"text": `"` + strings.Repeat("x", 2_000_000) + `"`, "keys": "{" + strings.Join(keys, ",") + "}",
		"nested": strings.Repeat(`[{"a":"\\u0041","b":{"c":[true,null,"d"]}},`, 9_000) + "1" + strings.Repeat("]", 9_000),
	} {
		before := heap()
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		taken, estimate := heap()-before, footprint(value)
		runtime.KeepAlive(value)
		if estimate < taken/2 || estimate > 2*taken {
			t.Errorf("%s: %d bytes, estimated as %d", name, taken, estimate)
		}
		if got := textFootprint([]byte(text)); got != estimate {
			t.Errorf("%s: by the text, it is estimated as %d, want %d", name, got, estimate)
		}
	}
}

func TestCachesKeepOnlyTheMetadataOfLargeObjects(t *testing.T) {
	c := &controller{finalizer: "metacontroller.io/x"}
	shrink := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		kept, err := c.shrink(o)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := c.shrink(kept)
		if again != kept {
			t.Error("a second call has another result")
		}
		return kept.(*unstructured.Unstructured)
	}
	small := thing()
	small.Object[sizeField] = int64(99_999_999) // of a client that wants to look like a stub
	if o := shrink(small); isStub(o) || tooLarge(o) || o.Object["spec"] == nil {
		t.Errorf("a small object became %v", o.Object)
	}
	for size, refused := range map[int]bool{10_000: false, 60_000: true} {
		large := thing()
		large.Object["data"] = manyMaps(size)
		large.SetLabels(map[string]string{"app": "p"})
		o := shrink(large)
		if !isStub(o) || tooLarge(o) != refused || footprint(o.Object) > 10_000 {
			t.Errorf("%d maps: stub %v, too large %v, %d bytes", size, isStub(o), tooLarge(o), footprint(o.Object))
		}
		if s, err := Selector(o, false); o.GetName() != "p" || o.GetKind() != "Thing" || o.GetLabels()["app"] != "p" || err != nil || s.String() != "app=p" {
			t.Errorf("%d maps: the stub is %v", size, o.Object)
		}
	}
	full := thing()
	full.SetUID("u")
	full.SetFinalizers([]string{"other", c.finalizer})
	own(thing(), full)
	labels := map[string]string{}
	for i := range 30_000 {
		labels[fmt.Sprint("label-", i)] = "v"
	}
	full.SetLabels(labels)
	if o := shrink(full); !tooLarge(o) || footprint(o.Object) > 10_000 || o.GetUID() != "u" || !slices.Equal(o.GetFinalizers(), []string{c.finalizer}) || len(o.GetOwnerReferences()) != 1 {
		t.Errorf("an object with large metadata became one of %d bytes", footprint(o.Object))
	}
}

// sizes is a hook that notes the parents and children that it gets.
type sizes struct {
	mu            sync.Mutex
	parents       map[string]int // items in the last request, by name
	calls         map[string]int
	children      map[string]int
	running, most int
	pause         time.Duration
}

func (s *sizes) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request struct {
		Parent   unstructured.Unstructured `json:"parent"`
		Children map[string]map[string]struct {
			Spec struct{ Items []any }
		}
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, err
	}
	items, _, _ := unstructured.NestedSlice(request.Parent.Object, "spec", "items")
	s.mu.Lock()
	if s.parents == nil {
		s.parents, s.calls, s.children = map[string]int{}, map[string]int{}, map[string]int{}
	}
	s.running++
	s.most = max(s.most, s.running)
	s.parents[request.Parent.GetName()] = len(items)
	s.calls[request.Parent.GetName()]++
	desired := []any{}
	for name, child := range request.Children["Leaf.ctl.example.com/v1"] {
		s.children[name] = len(child.Spec.Items)
		desired = append(desired, map[string]any{"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "p"}}})
	}
	s.mu.Unlock()
	time.Sleep(s.pause)
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	return respond(r, nil, map[string]any{"body": map[string]any{"status": map[string]any{"done": true}, "children": desired}}), nil
}

// number returns the number of calls about a parent.
func (s *sizes) number(name string) int { return s.noted().calls[name] }

// noted returns a copy of the notes.
func (s *sizes) noted() *sizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &sizes{parents: maps.Clone(s.parents), calls: maps.Clone(s.calls), children: maps.Clone(s.children), most: s.most}
}

func createThing(t *testing.T, c *gopftest.Cluster, name string, items int) {
	t.Helper()
	o := thing()
	o.SetName(name)
	o.Object["spec"] = map[string]any{"items": manyMaps(items), "selector": map[string]any{"matchLabels": map[string]any{"app": name}}}
	c.Create(t, o)
}

// warnings returns the number of events about a parent that say the text.
func warnings(t *testing.T, c *gopftest.Cluster, name, text string) (n int64) {
	t.Helper()
	for _, o := range c.List(t, "v1/events", "default") {
		about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
		message, _, _ := unstructured.NestedString(o.Object, "message")
		if about == name && strings.Contains(message, text) {
			count, _, _ := unstructured.NestedInt64(o.Object, "count")
			n += max(1, count)
		}
	}
	return n
}

func TestALargeParentIsReadForItsSyncAndATooLargeOneIsNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &sizes{}
		c := newStage(t, Options{Transport: hook})
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		createThing(t, c, "small", 10)
		createThing(t, c, "large", 10_000)
		createThing(t, c, "huge", 60_000)
		time.Sleep(10 * time.Second)
		for i := range 5 {
			c.Patch(t, things, "default", "huge", map[string]any{"spec": map[string]any{"more": fmt.Sprint(i)}})
			time.Sleep(10 * time.Second)
		}
		if hook.noted().parents["small"] != 10 || hook.noted().parents["large"] != 10_000 || hook.noted().calls["huge"] > 0 {
			t.Errorf("the hook got parents with these items: %v", hook.noted().parents)
		}
		if n := warnings(t, c, "huge", "Thing default/huge needs about 21 MiB of memory, and the limit is 16 MiB; make the object smaller, or split it"); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
		for _, name := range []string{"small", "large"} {
			if done, _, _ := unstructured.NestedBool(c.Get(t, things, "default", name).Object, "status", "done"); !done {
				t.Errorf("%s was not synced", name)
			}
		}
		c.Patch(t, things, "default", "huge", map[string]any{"spec": map[string]any{"items": manyMaps(3)}})
		time.Sleep(10 * time.Second)
		if hook.noted().parents["huge"] != 3 {
			t.Error("the smaller parent was not synced")
		}
	})
}

func TestLargeChildrenAreAdoptedAndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &sizes{}
		c := newStage(t, Options{Transport: hook})
		leaf := func(name string, items int) {
			c.Create(t, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"app": "p"}},
				"spec": map[string]any{"items": manyMaps(items)},
			}})
		}
		leaf("large", 10_000)
		leaf("huge", 60_000) // an orphan that is too large is no child
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		createThing(t, c, "p", 1)
		time.Sleep(10 * time.Second)
		if len(hook.noted().children) != 1 || hook.noted().children["large"] != 10_000 {
			t.Errorf("the hook got children with these items: %v", hook.noted().children)
		}
		if len(c.Get(t, leaves, "default", "large").GetOwnerReferences()) != 1 {
			t.Error("the large orphan is not adopted")
		}
		calls := hook.noted().calls["p"]
		c.Patch(t, leaves, "default", "large", map[string]any{"spec": map[string]any{"items": manyMaps(60_000)}})
		time.Sleep(10 * time.Second)
		if hook.noted().calls["p"] != calls || warnings(t, c, "p", "Leaf default/large needs about 21 MiB") != 1 {
			t.Errorf("%d more calls with a child that is too large, and %d warnings", hook.noted().calls["p"]-calls, warnings(t, c, "p", "needs about"))
		}
		c.Get(t, leaves, "default", "large") // is not deleted
	})
}

func TestFewSyncsOfLargeParentsRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &sizes{pause: time.Second}
		c := newStage(t, Options{Transport: hook})
		for i := range 12 {
			createThing(t, c, fmt.Sprint("large-", i), 4000)
		}
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		time.Sleep(3 * time.Second)
		createThing(t, c, "small", 1)
		time.Sleep(1500 * time.Millisecond)
		if hook.number("small") == 0 {
			t.Error("a small parent waited for large ones")
		}
		time.Sleep(time.Minute)
		if len(hook.noted().calls) != 13 || hook.noted().most > largeSyncs+1 {
			t.Errorf("%d parents were synced, %d at a time", len(hook.noted().calls), hook.noted().most)
		}
	})
}

func TestWarningsAboutLargeObjectsAreLimitedForEachParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, b := &controller{}, key{0, "n", "a"}, key{0, "n", "b"}
		for i, want := range []bool{true, false, false} {
			if c.mayWarn(a) != want {
				t.Errorf("the warning %d is due: %v", i, !want)
			}
		}
		if !c.mayWarn(b) {
			t.Error("the warning about another parent is suppressed")
		}
		time.Sleep(warnInterval)
		if !c.mayWarn(a) {
			t.Error("a warning is suppressed forever")
		}
	})
}
