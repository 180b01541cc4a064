package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// spaces has the namespaces of an operator with a mandatory peering in each of them.
type spaces struct {
	*gopftest.Cluster
	t     *testing.T
	diary calls
	log   lines
}

func newSpaces(t *testing.T, c *gopftest.Cluster, names ...string) *spaces {
	t.Helper()
	c.Define(t, gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true})
	s := &spaces{Cluster: c, t: t}
	for _, name := range names {
		c.CreateNamespace(t, name)
	}
	return s
}

// meet creates the peering objects of namespaces.
func (s *spaces) meet(namespaces ...string) {
	s.t.Helper()
	for _, namespace := range namespaces {
		s.Create(s.t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": map[string]any{"namespace": namespace, "name": "default"},
		}})
	}
}

// add creates an object in a namespace.
func (s *spaces) add(namespace string) {
	s.t.Helper()
	o := example("x", namespace)
	o.SetNamespace(namespace)
	s.Create(s.t, o)
}

func (s *spaces) operator() *gopf.Operator {
	op := peer(&s.diary, "one", 0)
	op.Settings.Peering.Mandatory = true
	return op
}

func (s *spaces) start(op *gopf.Operator, patterns ...string) {
	s.t.Helper()
	gopftest.Start(s.t, op, s.Cluster, gopf.Namespaces(patterns...), gopf.Log(s.log.logger()))
}

// expect waits, and compares the namespaces whose objects were handled so far.
func (s *spaces) expect(after time.Duration, when string, namespaces ...string) {
	s.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	got := s.diary.all()
	slices.Sort(got)
	want := make([]string, len(namespaces))
	for i, namespace := range namespaces {
		want[i] = "one create " + namespace
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

const notServed = "The namespace is not served, because the peering is mandatory"

// A tenant that may create namespaces makes one that matches the pattern.
func TestANewNamespaceWithoutAPeeringObjectIsHeldBackAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		s := newSpaces(t, c, "many-1")
		s.meet("many-1")
		s.start(s.operator(), "many-*")
		s.expect(10*time.Second, "at the start")
		c.CreateNamespace(t, "many-evil")
		s.add("many-evil")
		time.Sleep(10 * time.Second)
		s.add("many-1")
		s.expect(time.Hour, "with another namespace", "many-1")
		if n := s.log.count(notServed, "namespace=many-evil", "has no peering object", "Create the object"); n != 1 {
			t.Errorf("%d warnings", n)
		}
		if n := s.log.count("Handling is paused."); n != 1 { // at the start, until the first object is seen
			t.Errorf("%d pauses", n)
		}
		s.meet("many-evil")
		s.expect(10*time.Second, "with its peering object", "many-1", "many-evil")
		if !s.log.has("so the namespace is served now", "namespace=many-evil") {
			t.Error("the log does not say that the namespace is served")
		}
	})
}

func TestANamespaceWithoutAPeeringObjectDoesNotStopTheNextStart(t *testing.T) {
	for name, forbidden := range map[string]bool{"not found": false, "forbidden": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				s := newSpaces(t, c, "many-1", "many-2", "many-evil")
				s.meet("many-1", "many-2")
				lift := func() {}
				if forbidden {
					lift = c.Deny("*", "kopfpeerings", "many-evil")
				}
				s.add("many-1")
				s.add("many-2")
				s.add("many-evil")
				op := s.operator()
				gopf.Index(gopf.For[*Example](op, resource), "by-field", byField)
				s.start(op, "many-*")
				s.expect(time.Minute, "without the object", "many-1", "many-2")
				if n := s.log.count(notServed, "namespace=many-evil"); n != 1 {
					t.Errorf("%d warnings", n)
				}
				lift()
				s.meet("many-evil")
				s.expect(time.Minute, "with the object", "many-1", "many-2", "many-evil")
			})
		})
	}
}

// A permission that is revoked later changes nothing, as for other watches.
func TestANamespaceThatHasJoinedStaysServedIfItsPeeringBecomesForbidden(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		s := newSpaces(t, c, "many-1")
		s.meet("many-1")
		s.start(s.operator(), "many-*")
		settle()
		c.Deny("*", "kopfpeerings", "many-1")
		c.CutStreams()
		time.Sleep(time.Minute)
		s.add("many-1")
		s.expect(time.Minute, "afterwards", "many-1")
		if s.log.has(notServed) {
			t.Error("the log says that the namespace is not served")
		}
	})
}

func TestANamedNamespaceWithoutAPeeringObjectPausesTheOperator(t *testing.T) {
	for name, patterns := range map[string][]string{"fixed": {"many-1", "many-2"}, "mixed": {"many-2", "many-1*"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				s := newSpaces(t, c, "many-1", "many-2")
				s.meet("many-1")
				s.add("many-1")
				s.start(s.operator(), patterns...)
				s.expect(time.Hour, "without one of the objects")
				s.meet("many-2")
				s.expect(10*time.Second, "with both", "many-1")
			})
		})
	}
}

func TestWithoutAnyPeeringObjectTheOperatorOfAPatternPauses(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		s := newSpaces(t, c, "many-1", "many-2")
		op := s.operator()
		handled := make(chan string, 10)
		op.Resource("v1/namespaces").OnEvent("n", func(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
			handled <- e.Object.GetName()
			return nil
		})
		s.start(op, "many-*")
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(handled) > 0 {
			t.Error("cluster-scoped objects are handled without a peering")
		}
		s.meet("many-1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(handled) == 0 {
			t.Error("cluster-scoped objects are not handled with a peering")
		}
	})
}

// The handlers of one namespace must not see indices without the objects of another whose
// peering is read a moment later.
func TestTheIndexBarrierWaitsForThePeeringsOfAllNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		s := newSpaces(t, c, "many-1", "many-2")
		s.meet("many-1", "many-2")
		s.add("many-1")
		s.add("many-2")
		slow := c.Fault(gopftest.Requests("", "kopfpeerings").Object("many-2", "").From(1), gopftest.Fail(503))
		op := s.operator()
		x := gopf.For[*Example](op, resource)
		index := gopf.Index(x, "by-field", byField)
		x.OnCreate("count", func(context.Context, *gopf.Change[*Example]) error {
			if n := index.Len(); n != 2 {
				t.Errorf("a handler saw %d objects in the index", n)
			}
			return nil
		})
		s.start(op, "many-*")
		s.expect(time.Minute, "while one peering cannot be read")
		slow.Stop()
		s.expect(time.Minute, "afterwards", "many-1", "many-2")
	})
}
