package e2e

import (
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
)

func TestOnlyNamedNamespacesAreServed(t *testing.T) {
	t.Parallel()
	one, two, other := examples(t, namespace(t)), examples(t, namespace(t)), examples(t, namespace(t))
	called := &calls{}
	operator := run(t, greeter(called), gopf.Namespaces(one.namespace, two.namespace))
	for _, objects := range []objects{other, one, two} {
		objects.create("example", nil)
	}
	one.awaitHandled("example")
	two.awaitHandled("example")
	operator.stop()
	if other.handled("example") {
		t.Error("an object elsewhere was handled")
	}
	want := []string{one.namespace + "/example", two.namespace + "/example"}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(called.all()))); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
}

func TestOperatorsOfTwoNamespacesDoNotMeet(t *testing.T) {
	t.Parallel()
	one, two := examples(t, namespace(t)), examples(t, namespace(t))
	calledOne, calledTwo := &calls{}, &calls{}
	first := run(t, greeter(calledOne), gopf.Namespaces(one.namespace))
	second := run(t, greeter(calledTwo), gopf.Namespaces(two.namespace))
	one.create("example", nil)
	two.create("example", nil)
	one.awaitHandled("example")
	two.awaitHandled("example")
	first.stop()
	second.stop()
	for want, called := range map[string]*calls{one.namespace + "/example": calledOne, two.namespace + "/example": calledTwo} {
		if diff := cmp.Diff([]string{want}, called.all()); diff != "" {
			t.Errorf("calls: -want +got\n%s", diff)
		}
	}
}

func TestPatternsOfNamespaces(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	in := func(suffix string) objects { return examples(t, namespaceNamed(t, unique+suffix)) }
	one, two, three := in("-a-1"), in("-a-2"), in("-b-1")
	for _, objects := range []objects{one, two, three} {
		objects.create("example", nil)
	}
	called := newRecording(t)
	operator := startOperator(t, "greeting", called.env(), "run", "--namespace", unique+"-a-*,!"+unique+"-a-2", "--verbose")
	one.awaitHandled("example")
	later, excluded := in("-a-3"), in("-b-2")
	excluded.create("example", nil)
	later.create("example", nil)
	later.awaitHandled("example")
	operator.signal(syscall.SIGTERM)
	if code := operator.wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	for _, objects := range []objects{two, three, excluded} {
		if objects.handled("example") {
			t.Errorf("%s was served", objects.namespace)
		}
	}
	if diff := cmp.Diff([]string{"example", "example"}, called.calls()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
}

func TestANamespaceThatComesBackIsServedAgain(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	name := unique + "-x"
	called := &calls{}
	operator := run(t, greeter(called), gopf.Namespaces(unique+"-*"))
	for range 2 {
		objects := examples(t, namespaceNamed(t, name))
		objects.create("example", nil)
		objects.awaitHandled("example")
		all := allNamespaces(t)
		all.delete(name)
		await(t, name+" is gone", func() bool { return all.get(name) == nil })
	}
	operator.stop()
	if got := called.all(); len(got) != 2 {
		t.Errorf("calls: got %q", got)
	}
}
