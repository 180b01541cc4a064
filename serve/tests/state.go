package tests

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve/spec"
)

// state is the objects of a cluster, without the parts that differ in each run: by resource and
// namespace, and by name.
type state map[string]map[string]any

// stateOf reads the objects of the operator's resources, and of those that it has written.
func stateOf(t testing.TB, c *gopftest.Cluster, op *spec.Operator) state {
	resources := map[string]bool{}
	for _, r := range op.Resources {
		resources[r.Resource] = true
	}
	for _, r := range c.Requests() {
		if r.Write() && r.Code < 300 && r.Resource != "events" && r.Resource != "leases" {
			resources[path.Join(r.Group, r.Version, r.Resource)] = true
		}
	}
	s := state{}
	for resource := range resources {
		for _, o := range c.List(t, resource, "") {
			of := resource
			if ns := o.GetNamespace(); ns != "" {
				of += " in " + ns
			}
			if s[of] == nil {
				s[of] = map[string]any{}
			}
			s[of][o.GetName()] = essential(o)
		}
	}
	return s
}

// plain returns the state as maps of JSON.
func (s state) plain() map[string]any {
	all := map[string]any{}
	for of, objects := range s {
		all[of] = objects
	}
	return all
}

// changing are texts that differ in each run.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// essential returns an object without its server-side metadata, times and uids.
func essential(o *unstructured.Unstructured) map[string]any {
	fields := o.DeepCopy().Object
	meta, _ := fields["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		delete(meta, key)
	}
	return blurred(fields).(map[string]any)
}

// blurred returns a value in which times and uids are replaced.
func blurred(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			x[key] = blurred(value)
		}
	case []any:
		for i, value := range x {
			x[i] = blurred(value)
		}
	case string:
		return changing.ReplaceAllString(x, "…")
	}
	return v
}

// expected is the common part of two states.
type expected struct {
	state
	others map[string]int // number of objects whose names differ, by resource and namespace
}

// unlike stands for a value that differs by itself.
type unlike struct{}

// agreed returns the common part of two states.
func agreed(a, b state) expected {
	e := expected{state{}, map[string]int{}}
	for of := range merged(a, b) {
		e.state[of] = map[string]any{}
		for name := range merged(a[of], b[of]) {
			one, inA := a[of][name]
			two, inB := b[of][name]
			switch {
			case inA && inB:
				e.state[of][name] = common(one, two)
			case inA:
				e.others[of]++
			}
		}
	}
	return e
}

func merged[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return all
}

// common returns a value with unlike in the places in which two values differ.
func common(a, b any) any {
	x, isMap := a.(map[string]any)
	y, both := b.(map[string]any)
	if isMap && both {
		all := map[string]any{}
		for key := range merged(x, y) {
			one, inX := x[key]
			two, inY := y[key]
			if all[key] = unlike(struct{}{}); inX && inY {
				all[key] = common(one, two)
			}
		}
		return all
	}
	if reflect.DeepEqual(a, b) {
		return a
	}
	return unlike{}
}

// differences returns the differences of a state from the expected one.
func (e expected) differences(got state) (found []string) {
	for _, of := range slices.Sorted(maps.Keys(merged(map[string]map[string]any(e.state), got))) {
		others := 0
		for _, name := range slices.Sorted(maps.Keys(merged(e.state[of], got[of]))) {
			want, known := e.state[of][name]
			have, exists := got[of][name]
			switch {
			case !known:
				others++
			case !exists:
				found = append(found, fmt.Sprintf("%s: there is no %s at the end", of, name))
			default:
				found = append(found, differ(want, have, of+" "+name)...)
			}
		}
		if want := e.others[of]; others != want {
			found = append(found, fmt.Sprintf("%s: at the end, there are %d objects too %s", of, max(others-want, want-others), map[bool]string{true: "many", false: "few"}[others > want]))
		}
	}
	return found
}

// differ returns the differences of a value, with their paths.
func differ(want, got any, at string) []string {
	if _, ok := want.(unlike); ok {
		return nil
	}
	x, isMap := want.(map[string]any)
	y, both := got.(map[string]any)
	if !isMap || !both {
		if equal(want, got) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %s, not %s as without a crash", at, short(got), short(want))}
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(merged(x, y))) {
		value, wanted := x[key]
		have, exists := y[key]
		_, varies := value.(unlike)
		switch {
		case varies:
		case !wanted:
			found = append(found, fmt.Sprintf("%s.%s is %s; without a crash, it is missing", at, key, short(have)))
		case !exists:
			found = append(found, fmt.Sprintf("%s.%s is missing; without a crash, it is %s", at, key, short(value)))
		default:
			found = append(found, differ(value, have, at+"."+key)...)
		}
	}
	return found
}
