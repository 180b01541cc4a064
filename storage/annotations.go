package storage

import (
	"iter"
	"strings"
)

// DefaultPrefix is the prefix of Kopf's annotations.
const DefaultPrefix = "kopf.zalando.org"

// managedMarker is the name of the annotation that makes other operators ignore all
// annotations with the same prefix.
const managedMarker = "kopf-managed"

// annotations reads and writes the annotations with one prefix.
type annotations struct {
	prefix string
	v1     bool
}

func (a annotations) keys(o Object, id string) []string {
	return Keys(a.prefix, id, Marked(o), a.v1)
}

// values yields those keys that the object has, in order, with their values.
func values(o Object, keys []string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		all := annotationsOf(o)
		for _, key := range keys {
			if text, ok := all[key].(string); ok && !yield(key, text) {
				return
			}
		}
	}
}

// lookuper is the common part of Object and Patch.
type lookuper interface {
	Lookup(path ...string) (value any, found bool)
}

// annotationsPath is a variable, because a list of arguments would be allocated for
// each lookup.
var annotationsPath = []string{"metadata", "annotations"}

// annotationsOf returns the annotations of an object or a patch. nil means none.
func annotationsOf(o lookuper) map[string]any {
	value, _ := o.Lookup(annotationsPath...)
	all, _ := value.(map[string]any)
	return all
}

// own reports whether an annotation has the prefix.
func (a annotations) own(key string) bool {
	rest, ok := strings.CutPrefix(key, a.prefix)
	return ok && strings.HasPrefix(rest, "/")
}

// in reports whether an object or a patch has any annotation with the prefix. It is
// quick: objects without one need no further lookups.
func (a annotations) in(o lookuper) bool {
	for key := range annotationsOf(o) {
		if a.own(key) {
			return true
		}
	}
	return false
}

// put writes the value under all keys.
func (a annotations) put(o Object, p Patch, keys []string, value string) {
	for _, key := range keys {
		p.Set(value, "metadata", "annotations", key)
	}
	a.mark(o, p)
}

// purge removes each of the keys.
func (a annotations) purge(o Object, p Patch, keys []string) {
	for _, key := range keys {
		_, present := annotationsOf(o)[key]
		_, patched := annotationsOf(p)[key]
		if present || patched {
			purge(o, p, "metadata", "annotations", key)
		}
	}
}

// mark adds the marker that the prefix belongs to an operator. Kopf omits it for all
// prefixes that begin like its own, although it recognizes only a few of them; see
// [Adviser].
func (a annotations) mark(o Object, p Patch) {
	if strings.HasPrefix(a.prefix, "kopf.") {
		return
	}
	path := []string{"metadata", "annotations", a.prefix + "/" + managedMarker}
	if _, ok := o.Lookup(path...); ok {
		return
	}
	if _, ok := p.Lookup(path...); ok {
		return
	}
	p.Set("yes", path...)
}
