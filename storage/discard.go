package storage

// Discarder is implemented by base storages that can remove the base from an object. The
// operator does so for copies of other objects. It also does so while an object is being
// deleted, if the records of its handlers need the space.
type Discarder interface {
	// Discard adds the removal of the base to the patch, if the object has one.
	Discard(o Object, p Patch)
}

var (
	_ Discarder = (*AnnotationBase)(nil)
	_ Discarder = (*StatusBase)(nil)
	_ Discarder = multiBase(nil)
)

// Discard implements [Discarder].
func (s *StatusBase) Discard(o Object, p Patch) { purge(o, p, s.Field...) }

// Discard implements [Discarder].
func (m multiBase) Discard(o Object, p Patch) {
	for _, storage := range m {
		if d, ok := storage.(Discarder); ok {
			d.Discard(o, p)
		}
	}
}
