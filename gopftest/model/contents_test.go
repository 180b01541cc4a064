package model_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// content is the part of an object that users write: raw JSON values of spec fields, labels
// and annotations.
type content struct {
	spec        map[string]string
	labels      map[string]string
	annotations map[string]string
}

// pools are the values that users choose from. They are few, so changes are often reverted.
var pools = map[string][]string{
	"a":   {`"x0"`, `"x1"`, `"x2"`},
	"b":   {`"y0"`, `"y1"`, ``, `""`},
	"big": {`9007199254740993`, `9223372036854775807`, `-9007199254740995`, `1763200000000000001`, `18446744073709551615`, `0.1`},
	"odd": {
		`[{"a.b/c~d":"dots","":"no name"}]`, `["",null,{},[]]`, `["ünï☃ \u0000 \" \\ </script>"]`, `[1e3,-0,{"n":[[[]]]}]`, ``,
	},
}

var fields = []string{"a", "b", "big", "odd"}

// chosen returns the fields that the users of one world write: always the plain ones, and
// rarely those with contents that are hard to store.
func chosen(r *rand.Rand) []string {
	some := []string{"a", "b"}
	for _, f := range fields[2:] {
		if chance(r, 20) {
			some = append(some, f)
		}
	}
	return some
}

var tiers = []string{"gold", "silver", ""}

func randomContent(r *rand.Rand, fields []string) content {
	c := content{spec: map[string]string{}, labels: map[string]string{}, annotations: map[string]string{}}
	for _, f := range fields {
		if f == "a" || r.IntN(2) == 0 {
			c.spec[f] = pick(r, pools[f])
		}
	}
	c.labels["tier"] = pick(r, tiers)
	return c
}

// changed returns another content, with one or two differences in the spec.
func (c content) changed(r *rand.Rand, fields []string) content {
	n := c.clone()
	for range 1 + r.IntN(2) {
		f := "a"
		if r.IntN(2) == 0 {
			f = pick(r, fields)
		}
		n.spec[f] = another(r, pools[f], n.spec[f])
	}
	return n
}

// relabeled returns another content, with a difference in the metadata.
func (c content) relabeled(r *rand.Rand) content {
	n := c.clone()
	if r.IntN(4) == 0 {
		n.annotations["example.com/no.te"] = pick(r, []string{"", "1", "ü"})
		return n
	}
	n.labels["tier"] = another(r, tiers, n.labels["tier"])
	return n
}

func (c content) clone() content {
	return content{spec: maps.Clone(c.spec), labels: maps.Clone(c.labels), annotations: maps.Clone(c.annotations)}
}

// patch returns a merge patch that gives an object this content.
func (c content) patch() map[string]any {
	spec := map[string]any{}
	for _, f := range fields {
		spec[f] = nil
		if c.spec[f] != "" {
			spec[f] = json.RawMessage(c.spec[f])
		}
	}
	labels := map[string]any{"tier": nil}
	if c.labels["tier"] != "" {
		labels["tier"] = c.labels["tier"]
	}
	annotations := map[string]any{"example.com/no.te": nil}
	for k, v := range c.annotations {
		annotations[k] = v
	}
	return map[string]any{"spec": spec, "metadata": map[string]any{"labels": labels, "annotations": annotations}}
}

func (c content) String() string {
	parts := []string{"tier=" + c.labels["tier"]}
	for _, f := range fields {
		if c.spec[f] != "" {
			parts = append(parts, f+"="+c.spec[f])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.annotations)) {
		parts = append(parts, fmt.Sprintf("%s=%q", k, c.annotations[k]))
	}
	return strings.Join(parts, " ")
}

// Keys written by the operator's handlers. Users never write these.
const (
	ownPrefix  = "op-"
	ownSpec    = "made"
	storageKey = "kopf.zalando.org/"
)

// userState returns the part of an object that users write, as JSON.
func userState(obj map[string]any) string {
	metadata, _ := obj["metadata"].(map[string]any)
	spec, _ := obj["spec"].(map[string]any)
	text, err := json.Marshal([]any{
		without(spec, func(k string) bool { return k == ownSpec }),
		without(asMap(metadata["labels"]), func(k string) bool { return strings.HasPrefix(k, ownPrefix) }),
		without(asMap(metadata["annotations"]), func(k string) bool {
			return strings.HasPrefix(k, ownPrefix) || strings.HasPrefix(k, storageKey)
		}),
	})
	if err != nil {
		return "not JSON: " + err.Error()
	}
	return string(text)
}

func without(m map[string]any, drop func(string) bool) map[string]any {
	kept := map[string]any{}
	for k, v := range m {
		if !drop(k) {
			kept[k] = v
		}
	}
	return kept
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// digest returns a short hash of a text.
func digest(text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return fmt.Sprintf("d%08x", h.Sum32())
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func another[T comparable](r *rand.Rand, from []T, than T) T {
	for {
		if v := pick(r, from); v != than {
			return v
		}
	}
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }
