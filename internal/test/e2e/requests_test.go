package e2e

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
)

func TestHandlingCostsFewWrites(t *testing.T) {
	t.Parallel()
	const path = "kopfexamples/example"
	cases := map[string]struct {
		result any
		want   []string
	}{
		"with a result":    {map[string]string{"message": "hello world"}, []string{"PATCH " + path + "/status", "PATCH " + path}},
		"without a result": {nil, []string{"PATCH " + path}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := examples(t, namespace(t))
			op := gopf.New()
			op.Resource("kopfexamples").OnCreate("create_fn", func(_ context.Context, change *gopf.Change[gopf.Unstructured]) error {
				if c.result != nil {
					change.SetResult(c.result)
				}
				return nil
			})
			sent := &requests{}
			operator := run(t, op, gopf.Namespaces(objects.namespace), gopf.Cluster(sent.config()))
			objects.create("example", nil)
			objects.awaitHandled("example")
			// When another object has been handled, the echo of the writes was seen.
			objects.create("other", nil)
			objects.awaitHandled("other")
			operator.Stop()
			if diff := cmp.Diff(c.want, sent.about("example")); diff != "" {
				t.Errorf("requests: -want +got\n%s", diff)
			}
		})
	}
}

func TestAHandledObjectCostsNoWrites(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	objects.create("old", map[string]any{"spec": map[string]any{"field": "value"}})
	first := run(t, greeter(&calls{}), gopf.Namespaces(objects.namespace))
	objects.awaitHandled("old")
	first.Stop()

	sent := &requests{}
	second := run(t, greeter(&calls{}), gopf.Namespaces(objects.namespace), gopf.Cluster(sent.config()))
	second.Log.WaitFor(t, "/old] Resuming is in progress")
	objects.create("new", nil)
	objects.awaitHandled("new")
	second.Stop()
	if got := sent.about("old"); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	if got := sent.about("new"); len(got) != 2 {
		t.Errorf("requests are not counted: got %q", got)
	}
}
