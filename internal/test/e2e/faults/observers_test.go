package faults_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// faultsOfObservers are what befalls the streams of namespaces and definitions:
// whatever it is, the change that is made meanwhile must be noticed soon after.
func faultsOfObservers(resource string) map[string]fault {
	streams := watchesOf(resource)
	once := func(e effect) fault {
		return fault{begin: func(p *proxy) {
			p.strike(streams, e).first(1)
			p.cutStreams(resource)
		}}
	}
	whole := func(e effect) fault { return cutting(storm(everything, e, 2*time.Second)) }
	return map[string]fault{
		"410 as an answer":  once(answers(410)),
		"410 in the stream": once(events(breaking(1, errorEvent(410)))),
		"403 once":          once(answers(403)),
		"401 once":          once(answers(401)),
		"500 in the stream": once(events(breaking(1, errorEvent(500)))),
		"a malformed event": once(events(breaking(1, nonsense))),
		"no answer":         once(neverSends),
		"frozen":            {begin: func(p *proxy) { p.freezeStreams(resource) }},
		"503 for all":       whole(answers(503)),
		"404 for all":       whole(answers(404)),
		"401 for all":       whole(answers(401)),
		"connections break": whole(drops),
	}
}

// during makes a change while the fault is on.
func (f fault) during(p *proxy, change func()) {
	f.begin(p)
	change()
	if f.lasts > 0 {
		time.Sleep(f.lasts)
		f.end(p)
	}
}

func TestFaultsOfTheStreamOfNamespaces(t *testing.T) {
	t.Parallel()
	for name, f := range faultsOfObservers("namespaces") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op, n := newOperator()
			prefix := newSpace(t, cluster).name // a namespace that is not served
			first := newSpaceNamed(t, cluster, prefix+"-")
			o := run(first, newProxy(t, cluster), op, n, gopf.Namespaces(prefix+"-*"))
			o.following(patients)
			first.create("x", "v1")
			kit.Eventually(t, handled(first, "x"))

			var second *space
			f.during(o.proxy, func() { second = newSpaceNamed(t, cluster, prefix+"-") })
			ended := time.Now()
			second.create("y", "v1")
			kit.Eventually(t, handled(second, "y"))
			if took := time.Since(ended); took > soon {
				t.Errorf("the new namespace was served only %v after the fault's end", took)
			}
			o.checkWell(deletion)
		})
	}
}

// A namespace that goes while its stream is down, with the version to go on from,
// is left all the same.
func TestANamespaceThatGoesInAGapIsLeft(t *testing.T) {
	t.Parallel()
	op, n := newOperator()
	prefix := newSpace(t, cluster).name
	first, second := newSpaceNamed(t, cluster, prefix+"-"), newSpaceNamed(t, cluster, prefix+"-")
	o := run(first, newProxy(t, cluster), op, n, gopf.Namespaces(prefix+"-*"))
	first.create("x", "v1")
	second.create("y", "v1")
	kit.Eventually(t, handled(first, "x"))
	kit.Eventually(t, handled(second, "y"))
	first.delete("x")
	gap := o.proxy.strike(watchesOf("namespaces"), answers(503))
	o.proxy.cutStreams("namespaces")
	first.deleteNamespace()
	kit.Eventually(t, func() error {
		if _, err := first.cluster.Resource(namespaceResource).Get(first.ctx(), first.name, metav1.GetOptions{}); err == nil {
			return fmt.Errorf("%s is not gone yet", first.name)
		}
		return nil
	})
	o.proxy.strike(watchesOf("namespaces"), answers(410)).first(1)
	gap.end()
	o.leaves(first)
	second.create("z", "v1")
	kit.Eventually(t, handled(second, "z"))
}

func handled(s *space, name string) func() error {
	return func() error { return s.doneOne(creation, name) }
}

func (s *space) deleteNamespace() {
	s.t.Helper()
	if err := s.cluster.Resource(namespaceResource).Delete(s.ctx(), s.name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// leaves waits until the operator does not follow the namespace any more, and is
// not just between two watches.
func (o *operator) leaves(s *space) {
	o.t.Helper()
	for end, quiet := time.Now().Add(kit.Patience), 0; quiet < 20; time.Sleep(25 * time.Millisecond) {
		quiet++
		if o.streamsIn(s.name) > 0 {
			quiet = 0
		}
		if time.Now().After(end) {
			o.t.Fatal("a namespace that is gone is followed")
		}
	}
}

// streamsIn counts the open streams of objects in a namespace.
func (o *operator) streamsIn(namespace string) (n int) {
	for _, x := range o.proxy.streamsOf(patients) {
		if strings.Contains(x.r.URL.Path, "/namespaces/"+namespace+"/") {
			n++
		}
	}
	return n
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// define makes a definition of a kind of the test's own.
func (s *space) define(plural string) {
	s.t.Helper()
	preserved := fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": plural + ".faults.gopf.dev"},
		"spec": fields{
			"scope": "Namespaced", "group": "faults.gopf.dev",
			"names": fields{"kind": strings.ToUpper(plural[:1]) + plural[1:], "plural": plural},
			"versions": []any{fields{"name": "v1", "served": true, "storage": true, "schema": fields{
				"openAPIV3Schema": fields{"type": "object", "properties": fields{"spec": preserved}},
			}}},
		},
	}}
	if _, err := s.cluster.Resource(definitions).Create(s.ctx(), definition, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.undefine(plural) })
}

func (s *space) undefine(plural string) {
	_ = s.cluster.Resource(definitions).Delete(s.ctx(), plural+".faults.gopf.dev", metav1.DeleteOptions{}) // it may be gone
}

func TestFaultsOfTheStreamOfDefinitions(t *testing.T) {
	t.Parallel()
	number := 0
	for name, f := range faultsOfObservers("customresourcedefinitions") {
		number++
		plural := fmt.Sprintf("kinds%c", 'a'+number)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t, cluster)
			op, n := newOperator()
			var mu sync.Mutex
			var created []string
			op.Resource("faults.gopf.dev/v1/"+plural).OnCreate("made", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
				mu.Lock()
				defer mu.Unlock()
				created = append(created, c.Object.GetName())
				return nil
			})
			o := run(s, newProxy(t, cluster), op, n)
			o.following(patients)
			kit.Eventually(t, func() error {
				if len(o.proxy.streamsOf("customresourcedefinitions")) == 0 {
					return fmt.Errorf("definitions are not followed")
				}
				return nil
			})
			f.during(o.proxy, func() { s.define(plural) })
			ended := time.Now()
			of := schema.GroupVersionResource{Group: "faults.gopf.dev", Version: "v1", Resource: plural}
			kit.Eventually(t, func() error {
				obj := &unstructured.Unstructured{Object: fields{
					"apiVersion": "faults.gopf.dev/v1", "kind": strings.ToUpper(plural[:1]) + plural[1:], "metadata": fields{"name": "one"},
				}}
				_, err := s.cluster.Resource(of).Namespace(s.name).Create(s.ctx(), obj, metav1.CreateOptions{})
				return err
			})
			kit.Eventually(t, func() error {
				mu.Lock()
				defer mu.Unlock()
				if len(created) != 1 {
					return fmt.Errorf("the creations are %q", created)
				}
				return nil
			})
			took := time.Since(ended)
			t.Logf("served %.1f s after the fault's end", took.Seconds())
			if took > soon {
				t.Errorf("the new kind was served only %v after the fault's end", took)
			}
			// What was served before still is.
			o.space.do(creation)
			if err := o.settles(creation, soon); err != nil {
				t.Error(err)
			}
			f.during(o.proxy, func() { s.undefine(plural) })
			kit.Eventually(t, func() error {
				if !o.Log.Has("The resource is gone from the cluster") {
					return fmt.Errorf("the kind is served though it is gone")
				}
				return nil
			})
			o.checkWell(creation)
		})
	}
}
