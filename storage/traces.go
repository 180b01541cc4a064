package storage

// Tracer is a storage that can tell where it leaves something on objects. Those
// without need not be decoded to know that nothing is there. It is for storages
// of this package and for those made of them: others do without.
type Tracer interface {
	// Traces is where all that the storage keeps is. It is not ok if that cannot be
	// told.
	Traces() (t Traces, ok bool)
}

// Traces are places on objects.
type Traces struct {
	Prefixes []string // of annotations
	Keys     []string // of the status
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

func (m multiProgress) Traces() (t Traces, ok bool) {
	for _, storage := range m {
		more, ok := traces(storage)
		if !ok {
			return Traces{}, false
		}
		t.add(more)
	}
	return t, true
}

func (r retiredProgress) Traces() (t Traces, ok bool) { return traces(r.storage) }

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

func (m multiBase) Traces() (t Traces, ok bool) {
	for _, storage := range m {
		more, ok := traces(storage)
		if !ok {
			return Traces{}, false
		}
		t.add(more)
	}
	return t, true
}

func traces(s any) (t Traces, ok bool) {
	if tracer, is := s.(Tracer); is {
		return tracer.Traces()
	}
	return Traces{}, false
}

// Plain is the annotation that has the essence as it is, unless it is too large
// for that. It is not ok if there are several, or if what is in it depends on
// more than the object.
func (s *AnnotationBase) Plain() (key string, ok bool) {
	keys, _ := s.keys(false)
	return keys[0], len(keys) == 1 && len(s.Ignored) == 0
}
