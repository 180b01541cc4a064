package apiclient

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// memory is the memory for objects that a handler reads. It has room for them at once, or after a wait.
type memory struct {
	now, later int
	asked      []string
	held       map[string]int
}

func (m *memory) hold(_ context.Context, of string, bytes int, wait, always bool) bool {
	if m.asked = append(m.asked, fmt.Sprint(wait)); always {
		m.asked[len(m.asked)-1] = "always"
	}
	if wait {
		m.now = m.later
	}
	if bytes > m.now {
		return false
	}
	if m.held == nil {
		m.held = map[string]int{}
	}
	m.held[of] = bytes
	return true
}

// pages returns an API with config maps of so many bytes, one per page.
func pages(size, count int, requests *[]string) fake {
	body := func() *object.Body {
		b, err := object.ParseWhole([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"x":"` + strings.Repeat("x", size) + `"}}`))
		if err != nil {
			panic(err)
		}
		return b
	}
	respond := func(verb string) func(kube.Target) (*object.Body, error) {
		return func(t kube.Target) (*object.Body, error) {
			*requests = append(*requests, strings.Trim(verb+" "+t.Subresource, " "))
			return body(), nil
		}
	}
	return fake{
		get: respond("get"), patch: respond("patch"),
		create: func(string) (*object.Body, error) { return respond("create")(kube.Target{}) },
		page: func(page string, _ int) ([]*object.Body, string, error) {
			*requests = append(*requests, "page "+page)
			next := fmt.Sprint(len(page)) + page
			if len(next) == count {
				next = ""
			}
			return []*object.Body{body()}, next, nil
		},
	}
}

// Clients of the cluster choose how large the objects are that a handler reads.
func TestReadsOfLargeObjectsWaitForMemory(t *testing.T) {
	const small, large, plenty = 1 << 10, 1 << 20, 1 << 30
	for name, test := range map[string]struct {
		size       int
		memory     memory
		get, list  string // requests
		asked      string // for get
		unreadable bool
	}{
		"small objects count as well":        {small, memory{plenty, plenty, nil, nil}, "get", "page  page 0", "false", false},
		"there is memory":                    {large, memory{plenty, plenty, nil, nil}, "get", "page  page 0", "false", false},
		"there will be":                      {large, memory{0, plenty, nil, nil}, "get get", "page  page  page 0", "false true false", false},
		"there is none while it holds other": {large, memory{}, "get", "page ", "false true", true},
	} {
		for _, obj := range []client.Object{&corev1.ConfigMap{}, untyped()} {
			t.Run(fmt.Sprintf("%s: %T", name, obj), func(t *testing.T) {
				var requests []string
				info := kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}
				cluster := &Cluster{Objects: &Objects{API: pages(test.size, 2, &requests), Known: known(info)}}
				got := test.memory
				c := cluster.For("ns", nil, got.hold)
				obj.SetName("a")
				err := c.Get(t.Context(), obj)
				if asked := strings.Join(got.asked, " "); strings.Join(requests, " ") != test.get || asked != test.asked || (err != nil) != test.unreadable {
					t.Errorf("get: requests %q, asked for memory %q: %v", requests, asked, err)
				}
				if err != nil && !strings.Contains(err.Error(), "no memory for") {
					t.Errorf("get: %v", err)
				}
				requests, got, err = nil, test.memory, nil
				seen := 0
				for _, e := range c.List(t.Context(), obj) {
					if err = e; e == nil {
						seen++
					}
				}
				if strings.Join(requests, " ") != test.list || (err != nil) != test.unreadable || err == nil && seen != 2 {
					t.Errorf("list: %d objects, requests %q: %v", seen, requests, err)
				}
			})
		}
	}
}

// A handler may keep all objects that it has read one by one, or with client.List.
func TestReadsHaveNames(t *testing.T) {
	const size = 1 << 20
	for name, test := range map[string]struct {
		read func(context.Context, client.Client) error
		want int // parts, each of one object
	}{
		"one object twice": {func(ctx context.Context, c client.Client) error {
			_, err := client.Get[*corev1.ConfigMap](ctx, c, "a")
			_, again := client.Get[*corev1.ConfigMap](ctx, c, "a")
			return errors.Join(err, again)
		}, 1},
		"two objects": {func(ctx context.Context, c client.Client) error {
			_, err := client.Get[*corev1.ConfigMap](ctx, c, "a")
			_, other := client.Get[*corev1.ConfigMap](ctx, c, "b")
			return errors.Join(err, other)
		}, 2},
		"a list of three pages": {func(ctx context.Context, c client.Client) error {
			_, err := client.List[*corev1.ConfigMap](ctx, c)
			return err
		}, 3},
		"the same list twice": {func(ctx context.Context, c client.Client) error {
			_, err := client.List[*corev1.ConfigMap](ctx, c)
			_, again := client.List[*corev1.ConfigMap](ctx, c)
			return errors.Join(err, again)
		}, 3},
		"two lists": {func(ctx context.Context, c client.Client) error {
			_, err := client.List[*corev1.ConfigMap](ctx, c)
			_, other := client.List[*corev1.ConfigMap](ctx, c, client.LabelSelector("a=b"))
			return errors.Join(err, other)
		}, 6},
		"a page at a time": {func(ctx context.Context, c client.Client) error {
			for _, err := range client.Each[*corev1.ConfigMap](ctx, c) {
				if err != nil {
					return err
				}
			}
			return nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var requests []string
			got := memory{now: 1 << 30}
			info := kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}
			c := (&Cluster{Objects: &Objects{API: pages(size, 3, &requests), Known: known(info)}}).For("ns", nil, got.hold)
			if err := test.read(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, bytes := range got.held {
				sum += bytes
			}
			if len(got.held) != test.want || sum < test.want*size {
				t.Errorf("%d parts with %d KiB, want %d of %d KiB", len(got.held), sum>>10, test.want, size>>10)
			}
		})
	}
}

// A list of small objects may take a hundred times its size as a Go type.
func TestListsOfSmallObjectsCountDecoded(t *testing.T) {
	containers := "[" + strings.Repeat("{},", 9) + "{}]"
	raw := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns"},"spec":{"containers":` + containers + `}}`
	b, err := object.ParseWhole([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{hold: func(context.Context, string, int, bool, bool) bool { return true }}
	of := c.holding(&corev1.Pod{}, "ns", &client.Options{Keep: true})(1, slices.Repeat([]*object.Body{b}, 300))
	want := 300 * 10 * int(reflect.TypeFor[corev1.Container]().Size())
	if of.bytes < want || of.bytes > 4*want {
		t.Errorf("300 pods with 10 containers each count with %d KiB, want about %d", of.bytes>>10, want>>10)
	}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, untyped()} {
		if got := memoryAs(obj, b); got < smallRead || got > 8<<10 {
			t.Errorf("a small %T counts with %d bytes", obj, got)
		}
	}
}

// The response of a write is the whole object, however small the write is. The object was written,
// so the write must not fail afterwards, and nothing is read again.
func TestResponsesOfWritesWaitForMemory(t *testing.T) {
	const large, plenty = 1 << 20, 1 << 30
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"used": "true"}}}
	for name, write := range map[string]struct {
		do   func(context.Context, *Client, client.Object) error
		sent string
	}{
		"create": {func(ctx context.Context, c *Client, o client.Object) error { return c.Create(ctx, o) }, "create"},
		"apply":  {func(ctx context.Context, c *Client, o client.Object) error { return c.Apply(ctx, o) }, "patch"},
		"merge":  {func(ctx context.Context, c *Client, o client.Object) error { return c.Merge(ctx, o, label) }, "patch"},
		"merge status": {func(ctx context.Context, c *Client, o client.Object) error {
			return c.Merge(ctx, o, label, client.StatusSubresource())
		}, "patch status"},
	} {
		for _, test := range []struct {
			name   string
			memory memory
			asked  string
		}{
			{"there is memory", memory{plenty, plenty, nil, nil}, "always"},
			{"there will be", memory{0, plenty, nil, nil}, "always"},
			{"there is none", memory{}, "always"},
		} {
			t.Run(name+": "+test.name, func(t *testing.T) {
				var requests []string
				info := kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true, Subresources: []string{"status"}}
				c := (&Cluster{Objects: &Objects{API: pages(large, 1, &requests), Known: known(info)}}).For("ns", nil, test.memory.hold)
				test.memory.asked = nil
				obj := &corev1.ConfigMap{}
				obj.Name = "a"
				err := write.do(t.Context(), &c, obj)
				if got := strings.Join(requests, " "); got != write.sent || err != nil {
					t.Errorf("the requests are %q, want %q; the error is %v", got, write.sent, err)
				}
				if len(obj.Data["x"]) != large {
					t.Errorf("the object has %d bytes, want %d", len(obj.Data["x"]), large)
				}
				if got := strings.Join(test.memory.asked, " "); got != test.asked {
					t.Errorf("it asked for memory %q, want %q", got, test.asked)
				}
			})
		}
	}
}

func untyped() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	return u
}

func TestReadsHaveNoLimitWithoutOne(t *testing.T) {
	var requests []string
	info := kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}
	c := (&Cluster{Objects: &Objects{API: pages(1<<20, 2, &requests), Known: known(info)}}).For("ns", nil, nil)
	obj := &corev1.ConfigMap{}
	obj.Name = "a"
	if err := c.Get(context.Background(), obj); err != nil || len(obj.Data["x"]) != 1<<20 {
		t.Errorf("get: %v", err)
	}
}

// A page with fewer objects than requested had large ones, and took two requests.
func TestPagesOfLargeObjectsGrowWhenTheObjectsAreSmall(t *testing.T) {
	large, err := object.Parse([]byte(`{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", kube.LargePage/5) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	small, err := object.Parse([]byte(`{"metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	deliver := [][]*object.Body{{large, large, large, large}, {large, large, large, large}, {large, large, small, small}, {small, small, small, small, small, small, small, small}, {small}}
	var limits []int
	c := &Objects{API: fake{page: func(_ string, limit int) ([]*object.Body, string, error) {
		limits = append(limits, limit)
		items := deliver[len(limits)-1]
		if len(limits) == len(deliver) {
			return items, "", nil
		}
		return items, "more", nil
	}}}
	for _, err := range c.List(t.Context(), pods, "ns", kube.ListOptions{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{0, 4, 4, 8, 16}; !slices.Equal(limits, want) {
		t.Errorf("limits %v, want %v", limits, want)
	}
}
