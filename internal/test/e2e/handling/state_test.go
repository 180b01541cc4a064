package handling_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

func TestTheSchemaOfTheClusterDecidesWhereTheStateIs(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Persistence = gopf.StateInStatus("things")
	for _, resource := range []string{examples, plains, pruneds} {
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create_fn", d.handler("create "+plural(resource)))
		x.OnUpdate("update_fn", d.handler("update "+plural(resource)))
	}
	o := s.start(op, nil).following("examples", "plains", "pruneds")
	for _, resource := range []string{examples, plains, pruneds} {
		s.Create(resource, "x", spec("a"))
	}
	s.waitHandled(plains, "x", "a")
	s.waitHandled(pruneds, "x", "a")
	s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
		if got := statusText(obj, "things", "last-handled-configuration"); got != `{"spec":{"field":"a"}}` || len(obj.GetAnnotations()) > 0 {
			return fmt.Errorf("the base is %q, the annotations are %q", got, obj.GetAnnotations())
		}
		return nil
	})
	lines := strings.Join(o.Log.With("cannot be in status.things"), "\n")
	if strings.Count(lines, "cannot be in status.things") != 2 || !strings.Contains(lines, "subresources: {status: {}}") ||
		!strings.Contains(lines, "things: {type: object, x-kubernetes-preserve-unknown-fields: true}") {
		t.Errorf("got %s", lines)
	}
	o.staysQuiet(t, d)
}
