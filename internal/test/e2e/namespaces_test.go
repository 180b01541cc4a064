package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
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
	operator.Stop()
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
	first.Stop()
	second.Stop()
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
	operator.Signal(syscall.SIGTERM)
	if code := operator.Wait(); code != 0 {
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
		kit.Await(t, name+" is gone", func() bool { return all.get(name) == nil })
	}
	operator.Stop()
	if got := called.all(); len(got) != 2 {
		t.Errorf("calls: got %q", got)
	}
}

// cleaner is an operator whose objects wait for it to be deleted. It collects the
// calls of its deletion handler, and the deletions that it sees.
func cleaner(deleted, gone *calls) *gopf.Operator {
	op := gopf.New()
	x := op.Resource("kopfexamples")
	x.OnDelete("clean", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		deleted.add(c.Object)
		return nil
	})
	x.OnEvent("look", func(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
		if e.Type == "DELETED" {
			gone.add(e.Object)
		}
		return nil
	})
	return op
}

// awaitFinalizer waits until the object waits for the operator.
func (o objects) awaitFinalizer(name string) {
	o.t.Helper()
	kit.Await(o.t, o.namespace+"/"+name+" has the finalizer", func() bool {
		object := o.get(name)
		return object != nil && len(object.GetFinalizers()) > 0
	})
}

func TestANamespaceIsServedUntilWhatIsInItIsDeleted(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	objects := examples(t, namespaceNamed(t, unique+"-x"))
	deleted, gone := &calls{}, &calls{}
	operator := run(t, cleaner(deleted, gone), gopf.Namespaces(unique+"-*"))
	var want []string
	for _, name := range []string{"a", "b", "c"} {
		objects.create(name, nil)
		objects.awaitFinalizer(name)
		want = append(want, objects.namespace+"/"+name)
	}
	all := allNamespaces(t)
	all.delete(objects.namespace)
	kit.Await(t, "the namespace is gone", func() bool { return all.get(objects.namespace) == nil })
	kit.Await(t, "all deletions are seen", func() bool { return len(gone.all()) == 3 })
	operator.Stop()
	for what, c := range map[string]*calls{"deletion handlers": deleted, "events": gone} {
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(c.all()))); diff != "" {
			t.Errorf("%s: -want +got\n%s", what, diff)
		}
	}
}

func TestANamespaceThatIsBeingDeletedIsServedAfterARestart(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	objects := examples(t, namespaceNamed(t, unique+"-x"))
	first := run(t, cleaner(&calls{}, &calls{}), gopf.Namespaces(unique+"-*"))
	objects.create("example", nil)
	objects.awaitFinalizer("example")
	first.Stop()

	all := allNamespaces(t)
	all.delete(objects.namespace)
	kit.Await(t, "the deletion of the namespace waits", func() bool {
		conditions, _, _ := unstructured.NestedSlice(all.get(objects.namespace).Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["status"] == "True" })
	})
	deleted := &calls{}
	second := run(t, cleaner(deleted, &calls{}), gopf.Namespaces(unique+"-*"))
	kit.Await(t, "the namespace is gone", func() bool { return all.get(objects.namespace) == nil })
	second.Stop()
	if diff := cmp.Diff([]string{objects.namespace + "/example"}, deleted.all()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
}

func TestClusterScopedObjectsAreServedWithoutAnyNamespace(t *testing.T) {
	t.Parallel()
	classes := objects{t, "", "PriorityClass", schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}}
	unique := namespace(t)
	seen := &calls{}
	op := gopf.New()
	op.Resource("priorityclasses").OnEvent("look", func(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
		seen.add(e.Object)
		return nil
	})
	run(t, op, gopf.Namespaces(unique+"-none-*"))
	classes.create(unique, map[string]any{"value": int64(1)})
	t.Cleanup(func() { classes.delete(unique) })
	kit.Await(t, "the object is seen", func() bool { return slices.Contains(seen.all(), "/"+unique) })
}

// account makes a service account and returns a configuration with its token.
func account(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	accounts := objects{t, namespace, "ServiceAccount", schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}}
	made := accounts.create("operator", nil)
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"name": made.GetName()}, "spec": map[string]any{"expirationSeconds": int64(3600)},
	}}
	answer, err := accounts.client().Create(accounts.ctx(), request, metav1.CreateOptions{}, "token")
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster)
	config.QPS = -1
	config.BearerToken, _, _ = unstructured.NestedString(answer.Object, "status", "token")
	return config
}

// allow lets the account "operator" of the namespace do something in all the
// cluster.
func allow(t *testing.T, namespace, name, group string, resources, verbs []any) {
	t.Helper()
	create := func(kind string, fields map[string]any) {
		resource := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s"}
		o := objects{t, "", kind, resource}
		o.create(name, fields)
		t.Cleanup(func() { o.delete(name) })
	}
	create("ClusterRole", map[string]any{"rules": []any{map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}}})
	create("ClusterRoleBinding", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": "operator"}},
	})
}

func TestWhatIsMissingIsSaidAndServedWhenGranted(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	objects := examples(t, unique)
	config := account(t, unique)
	allow(t, unique, unique+"-look", "kopf.dev", []any{"kopfexamples"}, []any{"list", "watch"})
	op := greeter(&calls{})
	op.Settings.Queueing.ErrorDelays = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}
	operator := run(t, op, gopf.Cluster(config), gopf.Namespaces(unique))
	objects.create("example", nil)
	operator.Log.WaitFor(t, "A permission is missing.", "patch", "kopfexamples/status.kopf.dev", unique)
	kit.Await(t, "several retries", func() bool { return len(operator.Log.With("Throttling for ")) >= 6 })
	allow(t, unique, unique+"-write", "kopf.dev", []any{"kopfexamples", "kopfexamples/status"}, []any{"get", "patch"})
	objects.awaitHandled("example")
}

func TestPatternsWorkAsSoonAsNamespacesMayBeListed(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	plain, matching := examples(t, namespaceNamed(t, unique+"-plain")), examples(t, namespaceNamed(t, unique+"-x-1"))
	config := account(t, unique)
	allow(t, unique, unique+"-examples", "kopf.dev", []any{"kopfexamples", "kopfexamples/status"}, []any{"get", "list", "watch", "patch"})
	if _, err := dynamic.NewForConfigOrDie(config).Resource(namespaces).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Fatal("the account may list namespaces from the start")
	}
	operator := run(t, greeter(&calls{}), gopf.Cluster(config), gopf.Namespaces(unique+"-plain", unique+"-x-*"))
	plain.create("example", nil)
	matching.create("example", nil)
	plain.awaitHandled("example")
	operator.Log.WaitFor(t, "The operator may not list namespaces")
	if matching.handled("example") {
		t.Error("a namespace was found without permission")
	}
	allow(t, unique, unique+"-namespaces", "", []any{"namespaces"}, []any{"list", "watch"})
	matching.awaitHandled("example")
}
