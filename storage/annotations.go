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
		for _, key := range keys {
			value, _ := o.Lookup("metadata", "annotations", key)
			if text, ok := value.(string); ok && !yield(key, text) {
				return
			}
		}
	}
}

// lookuper is the common part of Object and Patch.
type lookuper interface {
	Lookup(path ...string) (value any, found bool)
}

// in reports whether an object or a patch has any annotation with the prefix.
func (a annotations) in(o lookuper) bool {
	value, _ := o.Lookup("metadata", "annotations")
	all, _ := value.(map[string]any)
	for key := range all {
		if rest, ok := strings.CutPrefix(key, a.prefix); ok && strings.HasPrefix(rest, "/") {
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
		purge(o, p, "metadata", "annotations", key)
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
