package vectors_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/hierarchy"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/recorder"
)

type hierarchyCase struct {
	Fn     string
	Args   []any
	Kwargs struct {
		Forced, Strict     bool
		Nested             any
		Controller         referenceFlag
		BlockOwnerDeletion referenceFlag `json:"block_owner_deletion"`
	}
	Before, After any
	Error         string
}

// referenceFlag is a keyword argument that is true unless it is given, and left out of the
// reference if it is null.
type referenceFlag struct{ no, omitted bool }

func (f *referenceFlag) UnmarshalJSON(raw []byte) error {
	f.no, f.omitted = string(raw) == "false", string(raw) == "null"
	return nil
}

// hierarchyOf differs from Kopf in what Go cannot say, or need not:
//
//   - labels are strings: a null cannot be asked for;
//   - owners and namespaces are always given by the caller: there is no context
//     to guess them from, so that no namespace is the same as an empty one;
//   - no namespace leaves no key, rather than a null (quirk 21);
//   - an owner in another namespace is an error, as the cluster would delete its
//     children.
func hierarchyOf(t *testing.T, v vector) {
	c := decode[hierarchyCase](t, v.JSON)
	err := c.perform(t)
	if before, ok := c.Before.(map[string]any); ok && c.Fn == "adopt" && !c.Kwargs.Forced && errors.As(err, new(*hierarchy.OutsideError)) {
		mine, _ := jsonvalue.Lookup(before, "metadata", "namespace")
		owners, _ := jsonvalue.Lookup(c.Args[0], "metadata", "namespace")
		if mine == owners {
			t.Errorf("both are in %v: %v", mine, err)
		}
		return
	}
	if (err != nil) != (c.Error != "") {
		t.Fatalf("got %v, want %q", err, c.Error)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(agreed(c.After), c.Before); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func (c *hierarchyCase) perform(t *testing.T) error {
	var first any
	if len(c.Args) > 0 {
		first = c.Args[0]
	}
	name, _ := first.(string)
	switch c.Fn {
	case "label":
		if len(c.Args) == 0 {
			return errors.New("no labels") // a call that Go does not compile
		}
		labels := map[string]string{}
		for key, value := range stringMap(first) {
			if text, isText := value.(string); isText {
				labels[key] = text
			}
		}
		return hierarchy.Label(c.Before, labels, c.options()...)
	case "harmonize_naming":
		return hierarchy.HarmonizeNaming(c.Before, name, c.options()...)
	case "adjust_namespace":
		if len(c.Args) == 0 {
			c.Error, c.After = "", nowhere(jsonvalue.Clone(c.Before), c.Kwargs.Forced)
		}
		return hierarchy.AdjustNamespace(c.Before, name, c.options()...)
	case "append_owner_reference":
		return hierarchy.AppendOwnerReference(c.Before, first, c.options()...)
	case "remove_owner_reference":
		return hierarchy.RemoveOwnerReference(c.Before, first)
	case "adopt":
		return hierarchy.Adopt(c.Before, first, c.options()...)
	}
	t.Fatalf("the function %s is not known", c.Fn)
	return nil
}

// nowhere is an object, or a list of them, after its namespace was adjusted to none.
func nowhere(o any, forced bool) any {
	switch o := o.(type) {
	case []any:
		for i := range o {
			o[i] = nowhere(o[i], forced)
		}
	case map[string]any:
		metadata := stringMap(o["metadata"])
		if metadata == nil {
			metadata = map[string]any{}
			o["metadata"] = metadata
		}
		if forced {
			delete(metadata, "namespace")
		}
	}
	return o
}

func (c *hierarchyCase) options() (opts []hierarchy.Option) {
	add := func(wanted bool, o hierarchy.Option) {
		if wanted {
			opts = append(opts, o)
		}
	}
	add(c.Kwargs.Forced, hierarchy.Forced())
	add(c.Kwargs.Strict, hierarchy.Strict())
	add(c.Kwargs.Controller.no, hierarchy.NotController())
	add(c.Kwargs.Controller.omitted, hierarchy.OmitController())
	add(c.Kwargs.BlockOwnerDeletion.no, hierarchy.NotBlocking())
	add(c.Kwargs.BlockOwnerDeletion.omitted, hierarchy.OmitBlocking())
	switch nested := c.Kwargs.Nested.(type) {
	case string:
		opts = append(opts, hierarchy.Nested(nested))
	case []any:
		for _, path := range nested {
			opts = append(opts, hierarchy.Nested(path.(string)))
		}
	}
	return opts
}

// agreed is the expected result as far as we agree: without nulls that are no
// names.
func agreed(after any) any {
	switch after := after.(type) {
	case []any:
		for _, o := range after {
			agreed(o)
		}
	case map[string]any:
		metadata := stringMap(after["metadata"])
		isNull := func(_ string, value any) bool { return value == nil }
		maps.DeleteFunc(stringMap(metadata["labels"]), isNull)
		maps.DeleteFunc(metadata, func(key string, value any) bool { return key == "namespace" && isNull(key, value) })
		for key, value := range after {
			if key != "metadata" { // objects may have templates of others
				agreed(value)
			}
		}
	}
	return after
}

func objectReference(t *testing.T, v vector) {
	c := decode[struct {
		Body   map[string]any
		Object map[string]any `json:"object_reference"`
		Owner  map[string]any `json:"owner_reference"`
	}](t, v.JSON)
	body, err := object.FromMap(c.Body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Object, recorder.Reference(body.Identity)); diff != "" {
		t.Errorf("the reference to an object: -want +got\n%s", diff)
	}
	child := map[string]any{}
	if err := hierarchy.AppendOwnerReference(child, c.Body); err != nil {
		t.Fatal(err)
	}
	refs, _ := jsonvalue.Lookup(child, "metadata", "ownerReferences")
	if diff := cmp.Diff(any([]any{c.Owner}), refs); diff != "" {
		t.Errorf("the reference to an owner: -want +got\n%s", diff)
	}
}
