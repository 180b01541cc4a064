package essence

import (
	"bytes"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/pause"
	"gopf.dev/gopf/storage"
)

// SettledTest finds settled objects from their bytes, without decoding them: objects
// that are unchanged since they were last handled and have no progress records. Most
// objects are settled most of the time, and decoding them costs ten times as much. It is
// safe for concurrent use.
type SettledTest struct {
	// TrustCopies means that an object with the state of another one may be settled.
	TrustCopies bool

	noted    []string // the annotations with the base: the present one, then former ones
	bound    []string // for each of them, the annotation that starts with the uid of the object that the base is for
	prefixes []string // the prefixes of annotations of the storages
	keys     [][]byte // the quoted keys of the progress storage in the status
	state    []byte   // the quoted key in the status that has the whole state; nil means that it is in annotations
	bases    [][]byte // all names of bases
	scratch  sync.Pool
}

// NewSettledTest returns a test for objects with these storages. nil means that the
// storages do not allow one.
func NewSettledTest(base storage.Base, progress storage.Progress) *SettledTest {
	var bases []*storage.AnnotationBase
	switch base := base.(type) {
	case *storage.AnnotationBase:
		bases = append(bases, base)
	case interface {
		AnnotationBases() []*storage.AnnotationBase
	}: // with former places
		bases = base.AnnotationBases()
	}
	g := &SettledTest{}
	for _, base := range bases {
		noted, ok := base.Plain()
		if !ok {
			return nil
		}
		g.bases = append(g.bases, []byte(noted))
		g.noted, g.bound, g.prefixes = append(g.noted, noted), append(g.bound, base.Bound()), append(g.prefixes, base.Prefix)
	}
	tracer, ok := progress.(storage.Tracer)
	if !ok || len(bases) == 0 {
		return nil
	}
	traces, ok := tracer.Traces()
	if !ok {
		return nil
	}
	g.prefixes = append(g.prefixes, traces.Prefixes...)
	for _, key := range traces.Keys {
		g.keys = append(g.keys, []byte(`"`+key+`"`))
	}
	if in, ok := base.(stateInStatus); ok && in.InStatus() {
		g.state = []byte(`"` + in.State().Keys()[0] + `"`)
		g.bases = append(g.bases, []byte(stateBase))
	}
	return g
}

// stateInStatus is implemented by base storages that belong to a [storage.StatusState].
type stateInStatus interface {
	InStatus() bool
	State() *storage.StatusState
}

// TestResult is the result of [SettledTest.Run].
type TestResult struct {
	// Settled reports that the object is unchanged since it was last handled and has
	// no progress records. False means unknown: decode the object.
	Settled bool
	// Finalizers are the finalizers of a settled object, as JSON. nil means none. If
	// Settled is false, it is not meaningful.
	Finalizers []byte
}

// scratch is the state of one test, with reusable buffers.
type scratch struct {
	walk   jsonvalue.Walk
	now    []byte // the current essence, encoded like a base
	kept   []byte // the annotations of the current essence
	labels []byte
	old    []byte // the base
	uid    []byte // the quoted uid of the object
	bound  []byte // the quoted value of the bound annotation; may be nil
	places [2]int // the places of old and bound in the lists of the test
	base   []byte // the base in the status
	held   bool   // the status has the state
	moved  []byte // the quoted note in the status about the base in the annotations; may be nil
}

// Run tests an object, which must be valid JSON. It does not modify raw.
func (g *SettledTest) Run(raw []byte) TestResult {
	if !g.hasBase(raw) {
		return TestResult{}
	}
	s, _ := g.scratch.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	s.start(raw)
	defer func() { s.start(nil); g.scratch.Put(s) }() //mutate:skip it only saves memory
	var found TestResult
	switch {
	case !g.scan(s, &found):
	case s.held:
		found.Settled = s.undisputed() && s.same(s.base)
	default:
		found.Settled = (g.TrustCopies || s.owned()) && (s.bound == nil || s.places[0] == s.places[1]) && s.same(s.old)
	}
	return found
}

// stateBase is the quoted name of the base in the state of the status.
const stateBase = `"last-handled-configuration"`

// hasBase reports whether an object may have a base. New objects have none, and need no scan. Names
// with escapes do not matter: an object that has such a name is decoded.
func (g *SettledTest) hasBase(raw []byte) bool {
	return slices.ContainsFunc(g.bases, func(name []byte) bool { return bytes.Contains(raw, name) })
}

// undisputed reports whether the annotations have no base, or the one from which the
// state was moved to the status. False means that the object must be decoded.
func (s *scratch) undisputed() bool {
	if len(s.old) == 0 {
		return true
	}
	n := len(s.moved) - 1 // without the closing quote
	return n > 1 && storage.MovedFrom(s.old, s.moved[1:n])
}

// start resets the scratch for another object, which it does not copy.
func (s *scratch) start(raw []byte) {
	s.walk = jsonvalue.NewWalk(raw)
	s.uid, s.bound = nil, nil
	s.now, s.kept, s.labels, s.old = append(s.now[:0], '{'), s.kept[:0], nil, s.old[:0]
	s.base, s.held, s.moved = s.base[:0], false, nil
}

// scan collects the parts of the essence in the order of a base. It returns false if the
// object must be decoded.
func (g *SettledTest) scan(s *scratch, found *TestResult) bool {
	return s.eachMember(func(name []byte) bool {
		switch string(name) {
		case `"apiVersion"`, `"kind"`:
			return s.skip()
		case `"metadata"`:
			return g.scanMetadata(s, found)
		case `"status"`:
			if g.state != nil {
				return g.scanStatus(s)
			}
			value, ok := s.value()
			for _, key := range g.keys {
				ok = ok && !bytes.Contains(value, key)
			}
			return ok
		}
		value, ok := s.value()
		s.now = appendField(s.now, name, value)
		return ok
	})
}

// scanStatus finds the state in the status. It returns false if there are records.
func (g *SettledTest) scanStatus(s *scratch) bool {
	if s.walk.Peek() != '{' {
		return s.skip()
	}
	return s.eachMember(func(name []byte) bool {
		switch {
		case bytes.Equal(name, g.state):
			return s.scanState()
		case bytes.ContainsRune(name, '\\'), slices.ContainsFunc(g.keys, func(key []byte) bool { return bytes.Equal(name, key) }):
			return false
		}
		return s.skip()
	})
}

// scanState reads the state of a settled object: a base, and maybe a note about its move.
func (s *scratch) scanState() bool {
	if s.held { // a key occurs twice
		return false
	}
	ok := s.eachMember(func(name []byte) bool {
		value, ok := s.value()
		switch string(name) {
		case `"progress"`:
			return ok && (string(value) == "{}" || string(value) == "null")
		case stateBase:
			var err error
			s.base, err = jsontext.AppendUnquote(s.base[:0], value)
			s.held = true
			return ok && err == nil
		case `"moved"`:
			s.moved = value
		}
		return ok
	})
	return ok && s.held
}

func (g *SettledTest) scanMetadata(s *scratch, found *TestResult) bool {
	return s.eachMember(func(name []byte) (ok bool) {
		switch string(name) {
		case `"labels"`:
			s.labels, ok = s.value()
			return ok
		case `"finalizers"`:
			found.Finalizers, ok = s.value()
			return ok
		case `"annotations"`:
			return g.scanAnnotations(s)
		case `"uid"`:
			s.uid, ok = s.value()
			return ok
		}
		return s.skip()
	})
}

func (g *SettledTest) scanAnnotations(s *scratch) bool {
	return s.eachMember(func(quoted []byte) bool {
		value, ok := s.value()
		if !ok || bytes.ContainsRune(quoted, '\\') { // valid annotation keys have no escapes
			return false
		}
		name := quoted[1 : len(quoted)-1]
		if at := index(g.noted, name); at >= 0 {
			if len(s.old) > 0 { // the base is in two places
				return false
			}
			var err error
			s.old, err = jsontext.AppendUnquote(s.old[:0], value)
			s.places[0] = at
			return err == nil
		}
		if at := index(g.bound, name); at >= 0 {
			if s.bound != nil {
				return false
			}
			s.bound, s.places[1] = value, at
			return true
		}
		prefix, rest, prefixed := bytes.Cut(name, []byte("/"))
		switch {
		case string(name) == lastApplied:
			return true
		case string(name) == pause.Key:
			return false // the pause must be noticed
		case prefixed && g.own(prefix):
			return string(rest) == managedName // any other annotation is a progress record
		case prefixed && string(rest) == managedName:
			return false // another operator's, and its other annotations may have come before
		case prefixed && managed(prefix):
			return true
		}
		s.kept = appendField(s.kept, quoted, value)
		return true
	})
}

// index returns the index of the name in the list, or -1.
func index(list []string, name []byte) int {
	for i, one := range list {
		if one == string(name) { // does not allocate
			return i
		}
	}
	return -1
}

// owned reports whether the base was saved for this object, or is not bound to any
// object. False means that the object must be decoded.
func (s *scratch) owned() bool {
	if s.bound == nil {
		return true
	}
	n := len(s.uid) - 1 // without the closing quote
	return n > 1 && len(s.bound) > n && bytes.Equal(s.bound[:n], s.uid[:n]) && s.bound[n] == '.'
}

// managedName is the name of an annotation that marks all annotations with the same
// prefix as an operator's.
const managedName = "kopf-managed"

// own reports whether a prefix of annotations belongs to the storages.
func (g *SettledTest) own(prefix []byte) bool {
	return index(g.prefixes, prefix) >= 0
}

// managed reports whether annotations with the prefix belong to operators by default.
func managed(prefix []byte) bool {
	return string(prefix) == storage.DefaultPrefix || bytes.HasSuffix(prefix, []byte("."+storage.DefaultPrefix))
}

// same completes the current essence and compares it with the base.
func (s *scratch) same(base []byte) bool {
	hasLabels := len(s.labels) > 0 && string(s.labels) != "{}" && string(s.labels) != "null"
	if hasLabels || len(s.kept) > 0 {
		s.now = append(appendComma(s.now), `"metadata":{`...)
		if hasLabels {
			s.now = appendField(s.now, []byte(`"labels"`), s.labels)
		}
		if len(s.kept) > 0 {
			s.now = append(appendComma(s.now), `"annotations":{`...)
			s.now = append(append(s.now, s.kept...), '}')
		}
		s.now = append(s.now, '}')
	}
	s.now = append(s.now, '}')
	old := bytes.TrimRight(base, "\n")
	return bytes.Equal(s.now, old) || canonical(s.now, old)
}

// sortedLevels limits the levels of texts whose members are sorted. Sorting copies the content
// of each object whose members have another order, so an object of many levels is copied as many
// times, here in the goroutine that reads the watch. Deeper objects are decoded and compared in
// their turns.
const sortedLevels = 32

// longestEscape is the length of an escape for a byte of text. A text that is so many times
// longer than another one has other values.
const longestEscape = len(`\u0041`)

// canonical reports whether two JSON texts are equal, regardless of string escapes and
// the order of members. It may modify a, but not b. A text beyond the limits of stored
// state is different, and so is one of more than [sortedLevels] levels. So is the digest of a
// large object: only its turn compares it.
func canonical(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || b[0] != '{' || len(a) > longestEscape*len(b) || otherBytes(a, b) || jsonvalue.Check(b, jsonvalue.MaxStored) != nil ||
		jsonvalue.Deeper(a, sortedLevels) || jsonvalue.Deeper(b, sortedLevels) {
		return false
	}
	x, y := jsontext.Value(a), jsontext.Value(append([]byte(nil), b...))
	how := []jsontext.Options{jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
	return x.Format(how...) == nil && y.Format(how...) == nil && bytes.Equal(x, y)
}

// otherBytes reports whether two texts without escapes consist of different bytes, apart from
// white space. Another order of members does not change the bytes, so such texts are different
// values. That is how most changes of objects are detected, in one pass over each text.
func otherBytes(a, b []byte) bool {
	inA, escapedA := countBytes(a)
	inB, escapedB := countBytes(b)
	return !escapedA && !escapedB && inA != inB
}

// countBytes returns how often each byte is in a text, apart from white space.
func countBytes(text []byte) (counts [256]uint32, escaped bool) {
	for _, c := range text {
		counts[c]++
	}
	escaped = counts['\\'] > 0
	for _, space := range []byte(" \t\r\n") {
		counts[space] = 0
	}
	return counts, escaped
}

func appendField(b, name, value []byte) []byte {
	return append(append(append(appendComma(b), name...), ':'), value...)
}

func appendComma(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] != '{' {
		return append(b, ',')
	}
	return b
}

// eachMember calls fn with the quoted name of each member of the next value, which must
// be an object, until fn returns false. fn must consume the member's value.
func (s *scratch) eachMember(fn func(name []byte) bool) bool {
	if !s.walk.Take('{') {
		return false
	}
	for s.walk.Peek() == '"' {
		if name, ok := s.value(); !ok || !fn(name) {
			return false
		}
	}
	return s.walk.Take('}')
}

// skip consumes the next value.
func (s *scratch) skip() bool { return s.walk.Value() != nil }

// value returns the bytes of the next value.
func (s *scratch) value() (value []byte, ok bool) {
	value = s.walk.Value()
	return value, value != nil
}
