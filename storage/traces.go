package storage

// Tracer is implemented by storages that know where they write on objects. The operator
// need not decode objects without such traces. Only the storages of this package and
// their combinations implement it; other storages work without it.
type Tracer interface {
	// Traces returns the places where the storage writes. ok reports whether the list is
	// complete.
	Traces() (t Traces, ok bool)
}

// Traces are places on objects.
type Traces struct {
	Prefixes []string // prefixes of annotations
	Keys     []string // keys in the status
}

func (t *Traces) add(more Traces) {
	t.Prefixes = append(t.Prefixes, more.Prefixes...)
	t.Keys = append(t.Keys, more.Keys...)
}

var (
	_ Tracer = (*AnnotationProgress)(nil)
	_ Tracer = (*StatusProgress)(nil)
	_ Tracer = multiProgress(nil)
	_ Tracer = retiredProgress{}
	_ Tracer = (*AnnotationBase)(nil)
	_ Tracer = (*StatusBase)(nil)
	_ Tracer = multiBase(nil)
)

// Traces implements [Tracer].
func (s *AnnotationProgress) Traces() (t Traces, ok bool) {
	return Traces{Prefixes: []string{s.Prefix}}, true
}

// Traces implements [Tracer].
func (s *StatusProgress) Traces() (t Traces, ok bool) {
	for _, path := range [][]string{s.Field, s.TouchField} {
		if len(path) < 2 || path[0] != "status" {
			return Traces{}, false
		}
		t.Keys = append(t.Keys, path[1])
	}
	return t, true
}

func (m multiProgress) Traces() (t Traces, ok bool) { return tracesOfAll(m) }

func (r retiredProgress) Traces() (t Traces, ok bool) { return traces(r.storage) }

func traces(s any) (t Traces, ok bool) {
	if tracer, is := s.(Tracer); is {
		return tracer.Traces()
	}
	return Traces{}, false
}

func tracesOfAll[S any](storages []S) (all Traces, ok bool) {
	ok = true
	for _, s := range storages {
		t, complete := traces(s)
		all.add(t)
		ok = ok && complete
	}
	return all, ok
}

// Traces implements [Tracer].
func (s *AnnotationBase) Traces() (t Traces, ok bool) {
	return Traces{Prefixes: []string{s.Prefix}}, true
}

// Traces implements [Tracer].
func (s *StatusBase) Traces() (t Traces, ok bool) {
	if len(s.Field) < 2 || s.Field[0] != "status" {
		return Traces{}, false
	}
	return Traces{Keys: []string{s.Field[1]}}, true
}

func (m multiBase) Traces() (t Traces, ok bool) { return tracesOfAll(m) }

// Plain returns the key of the annotation with the uncompressed essence. ok is false if
// there are several such annotations, or if paths are ignored, because the essence then
// does not depend on the object alone.
func (s *AnnotationBase) Plain() (key string, ok bool) {
	keys, _ := s.keys(false)
	return keys[0], len(keys) == 1 && len(s.Ignored) == 0
}
