package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// boundName is the annotation that binds a base to its object. Its value is the UID of the
// object, a dot, and 8 hex digits of a hash of the base. Kopf removes it from essences,
// like all annotations with the prefix.
const boundName = "gopf.bound"

// CopyDetector is implemented by base storages whose state can be copied together with
// the object, for example by "kubectl get -o yaml | kubectl create". An operator handles
// such a copy as a new object; see Settings.Persistence.TrustCopies.
type CopyDetector interface {
	// Copied reports whether the base on the object was saved for another object, and
	// returns the UID of the other object.
	Copied(o Object) (uid string, copied bool)

	// Discard is called before anything else is saved for a copy.
	Discarder
}

var (
	_ CopyDetector = (*AnnotationBase)(nil)
	_ CopyDetector = multiBase(nil)
)

// Copied implements [CopyDetector]. A base without the annotation gopf.bound, or whose
// annotation belongs to another base, is trusted: it was written by an operator that does
// not know the annotation.
func (s *AnnotationBase) Copied(o Object) (uid string, copied bool) {
	if !s.annotations().in(o) {
		return "", false
	}
	marked := Marked(o)
	for _, value := range values(o, []string{s.boundKey(marked)}) {
		uid, hash, ok := cutBound(value)
		if !ok || uid == o.Identity().UID || o.Identity().UID == "" {
			return "", false
		}
		plain, compressed := s.keys(marked)
		for _, base := range values(o, append(plain, compressed)) {
			if hashOf([]byte(base)) == hash {
				return uid, true
			}
		}
	}
	return "", false
}

// Discard implements [Discarder].
func (s *AnnotationBase) Discard(o Object, p Patch) {
	s.annotations().purge(o, p, s.allKeys(Marked(o)))
}

// bind writes the annotation for a base with the hash. Objects without a UID do not exist
// on API servers; for them, it removes the annotation.
func (a annotations) bind(o Object, p Patch, key, hash string) {
	if uid := o.Identity().UID; uid != "" {
		p.Set(uid+"."+hash, "metadata", "annotations", key)
		return
	}
	a.purge(o, p, []string{key})
}

// boundSize returns the size of the annotation, in bytes.
func boundSize(o Object, key string) int {
	if o.Identity().UID == "" {
		return 0
	}
	return len(key) + len(o.Identity().UID) + 1 + hashDigits
}

func (s *AnnotationBase) boundKey(marked bool) string { return firstKey(s.Prefix, boundName, marked) }

// Bound returns the key of the annotation that distinguishes copies from originals. Its
// value begins with the UID of its object and a dot.
func (s *AnnotationBase) Bound() (key string) { return s.boundKey(false) }

const hashDigits = 8

// hashOf returns the hash digits of a base in its stored form. Trailing white space does
// not count, because tools that copy objects may drop it.
func hashOf(base []byte) string {
	sum := sha256.Sum256(bytes.TrimRight(base, " \n"))
	return hex.EncodeToString(sum[:hashDigits/2])
}

func cutBound(value string) (uid, hash string, ok bool) {
	i := strings.LastIndexByte(value, '.')
	if i < 1 || len(value)-i-1 != hashDigits {
		return "", "", false
	}
	return value[:i], value[i+1:], true
}

// Copied implements [CopyDetector].
func (m multiBase) Copied(o Object) (uid string, copied bool) {
	for _, storage := range m {
		if detector, ok := storage.(CopyDetector); ok {
			if uid, copied := detector.Copied(o); copied {
				return uid, true
			}
		}
	}
	return "", false
}
