package essence

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"gopf.dev/gopf/storage"
)

// Glancer finds out from the bytes of objects whether they are as they were
// handled last, with nothing decoded. It says so only if it is sure: most
// objects most of the time are, and decoding them costs ten times as much.
type SettledTest struct {
	// TrustCopies turns off that copies of other objects are not settled.
	TrustCopies bool

	noted    string   // the annotation with the essence
	bound    string   // the annotation that begins with the uid of the object that the essence was noted for
	prefixes []string // of annotations that storages leave while something is being handled
	keys     [][]byte // of the status, in quotes, the same
	scratch  sync.Pool
}

// NewGlancer makes one for the storages; nil if they are of a kind that does not
// allow for it.
func NewSettledTest(base storage.Base, progress storage.Progress) *SettledTest {
	plain, ok := base.(*storage.AnnotationBase)
	if !ok {
		return nil
	}
	noted, ok := plain.Plain()
	if !ok {
		return nil
	}
	tracer, ok := progress.(storage.Tracer)
	if !ok {
		return nil
	}
	traces, ok := tracer.Traces()
	if !ok {
		return nil
	}
	g := &SettledTest{noted: noted, bound: plain.Bound(), prefixes: append(traces.Prefixes, plain.Prefix)}
	for _, key := range traces.Keys {
		g.keys = append(g.keys, []byte(`"`+key+`"`))
	}
	return g
}

// Glance is what the bytes of an object tell.
type Glance struct {
	// Settled is that the object is as it was handled last, and that nothing is
	// stored on it but what it was like then. If not, nobody knows.
	Settled bool
	// Finalizers are the object's, as JSON; nil if there are none. They are known
	// only of what is settled.
	Finalizers []byte
}

// scratch is memory to be used again, and one object that is being scanned.
type scratch struct {
	raw    []byte
	source bytes.Buffer
	dec    jsontext.Decoder
	now    []byte // the essence as it would be noted
	kept   []byte // its annotations
	labels []byte
	old    []byte // the essence as it was noted
	uid    []byte // of the object, in quotes
	bound  []byte // what binds the essence to the object, in quotes; nil for nothing
}

// Look glances at an object.
func (g *SettledTest) Run(raw []byte) Glance {
	s, _ := g.scratch.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	s.start(raw)
	defer func() { s.start(nil); g.scratch.Put(s) }() //mutate:skip it only saves memory
	var found Glance
	found.Settled = g.scan(s, &found) && len(s.old) > 0 && (g.TrustCopies || s.owned()) && s.same()
	return found
}

// start takes another object, without copying it.
func (s *scratch) start(raw []byte) {
	s.raw, s.source = raw, *bytes.NewBuffer(raw)
	s.dec.Reset(&s.source, jsontext.AllowDuplicateNames(true))
	s.uid, s.bound = nil, nil
	s.now, s.kept, s.labels, s.old = append(s.now[:0], '{'), s.kept[:0], nil, s.old[:0]
}

// scan collects the parts of the essence in the order in which it is noted. It
// returns false if something is there that has to be looked at closely.
func (g *SettledTest) scan(s *scratch, found *Glance) bool {
	return s.eachMember(func(name []byte) bool {
		switch string(name) {
		case `"apiVersion"`, `"kind"`:
			return s.dec.SkipValue() == nil
		case `"metadata"`:
			return g.scanMetadata(s, found)
		case `"status"`:
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

func (g *SettledTest) scanMetadata(s *scratch, found *Glance) bool {
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
		return s.dec.SkipValue() == nil
	})
}

func (g *SettledTest) scanAnnotations(s *scratch) bool {
	return s.eachMember(func(quoted []byte) bool {
		value, ok := s.value()
		if !ok || bytes.IndexByte(quoted, '\\') >= 0 { // nobody has such keys
			return false
		}
		name := quoted[1 : len(quoted)-1]
		prefix, rest, prefixed := bytes.Cut(name, []byte("/"))
		switch {
		case string(name) == g.noted:
			var err error
			s.old, err = jsontext.AppendUnquote(s.old[:0], value)
			return err == nil
		case string(name) == g.bound:
			s.bound = value
			return true
		case string(name) == lastApplied:
			return true
		case prefixed && g.own(prefix):
			return string(rest) == managedName // else something is being handled
		case prefixed && string(rest) == managedName:
			return false // of another operator, whose other annotations may have come before
		case prefixed && managed(prefix):
			return true
		}
		s.kept = appendField(s.kept, quoted, value)
		return true
	})
}

// owned reports whether the essence was noted for this object, as far as that is
// known. A false answer means that the object must be decoded.
func (s *scratch) owned() bool {
	if s.bound == nil {
		return true
	}
	n := len(s.uid) - 1 // without the quote at its end
	return n > 1 && len(s.bound) > n && bytes.Equal(s.bound[:n], s.uid[:n]) && s.bound[n] == '.'
}

// managedName is that of annotations that mark others with the same prefix as an
// operator's.
const managedName = "kopf-managed"

func (g *SettledTest) own(prefix []byte) bool {
	for _, p := range g.prefixes {
		if p == string(prefix) {
			return true
		}
	}
	return false
}

// managed tells whether annotations with the prefix belong to operators.
func managed(prefix []byte) bool {
	return string(prefix) == storage.DefaultPrefix || bytes.HasSuffix(prefix, []byte("."+storage.DefaultPrefix))
}

// same completes the essence as it would be noted, and compares it with what was.
func (s *scratch) same() bool {
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
	old := bytes.TrimRight(s.old, "\n")
	return bytes.Equal(s.now, old) || canonical(s.now, old)
}

// canonical compares JSON whose strings may be escaped and whose objects may be
// ordered differently.
func canonical(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || b[0] != '{' {
		return false
	}
	x, y := jsontext.Value(a), jsontext.Value(append([]byte(nil), b...))
	how := []jsontext.Options{jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
	return x.Format(how...) == nil && y.Format(how...) == nil && bytes.Equal(x, y)
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

// eachMember calls fn with the names, in quotes, of the members of the object
// that comes next, until it returns false; fn consumes the values.
func (s *scratch) eachMember(fn func(name []byte) bool) bool {
	if token, err := s.dec.ReadToken(); err != nil || token.Kind() != '{' {
		return false
	}
	for s.dec.PeekKind() == '"' {
		if name, ok := s.value(); !ok || !fn(name) {
			return false
		}
	}
	token, err := s.dec.ReadToken()
	return err == nil && token.Kind() == '}'
}

// value is the bytes of the next value; unlike those that the decoder returns,
// they stay.
func (s *scratch) value() (value []byte, ok bool) {
	v, err := s.dec.ReadValue()
	end := int(s.dec.InputOffset())
	return s.raw[end-len(v) : end], err == nil
}
