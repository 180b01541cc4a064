package storage

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
)

// AnnotationsLimit is the maximum size of all annotations of an object, keys and values, in
// bytes. The API server rejects more.
const AnnotationsLimit = 256 << 10

// AnnotationBase stores the essence in an annotation of the object itself:
// <prefix>/last-handled-configuration. Create one by [NewAnnotationBase], and change the
// fields only before its first use.
//
// An essence that is too large for this is compressed, and stored in another annotation,
// <prefix>/last-handled-configuration-gz, which Kopf does not read. If even that does not
// fit, Save returns a [*TooLargeError].
//
// A second annotation, <prefix>/gopf.bound, identifies the object that the base belongs to.
// It distinguishes copies of the object from the original; see [CopyDetector].
type AnnotationBase struct {
	// Prefix is the domain of the annotation. Operators that handle the same objects must
	// use different prefixes.
	Prefix string
	// Key is the name of the annotation after the prefix. Default:
	// "last-handled-configuration".
	Key string
	// V1 also writes and reads the key of old versions of Kopf, if it differs. Default:
	// true.
	V1 bool
	// Ignored are paths, as lists of keys. They are removed from essences, so changes in
	// them are not handled. Default: none.
	Ignored [][]string
	// CompressAbove is the size of all annotations of an object, in bytes, above which the
	// essence is compressed. Default: 32 KiB less than [AnnotationsLimit], which leaves
	// room for the records of handlers.
	CompressAbove int

	place string // of the constructor call, for Advice
}

var (
	_ Base          = (*AnnotationBase)(nil)
	_ ObjectCleaner = (*AnnotationBase)(nil)
	_ Validator     = (*AnnotationBase)(nil)
)

// NewAnnotationBase returns a storage in annotations with the prefix. The other fields
// have Kopf's defaults.
func NewAnnotationBase(prefix string) *AnnotationBase {
	return &AnnotationBase{
		Prefix:        prefix,
		Key:           "last-handled-configuration",
		V1:            true,
		CompressAbove: AnnotationsLimit - 32<<10,
		place:         callerOf(),
	}
}

// TooLargeError is returned if an essence does not fit into annotations even when it is
// compressed.
type TooLargeError struct {
	Size       int // of the essence as JSON, in bytes
	Compressed int // compressed size, in bytes
	Room       int // bytes that the other annotations leave; negative if they already exceed the limit
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the last-handled configuration is too large for annotations: "+
		"%d bytes, %d compressed, but only %d are available", e.Size, e.Compressed, e.Room)
}

// Load implements [Base].
func (s *AnnotationBase) Load(_ context.Context, o Object) (essence map[string]any, found bool, err error) {
	if !s.annotations().in(o) {
		return nil, false, nil // as for all new objects
	}
	plain, compressed := s.keys(Marked(o))
	for key, value := range values(o, append(plain, compressed)) {
		if key == compressed {
			value, err = decompress(value)
		}
		if err == nil {
			essence, found, err = DecodeEssence(value)
		}
		if err != nil {
			return nil, false, &MalformedError{Where: "the annotation " + key, Err: err}
		}
		if found {
			break
		}
	}
	return essence, found, nil
}

// Save implements [Base]. On error, the patch is not changed.
func (s *AnnotationBase) Save(_ context.Context, o Object, p Patch, essence map[string]any) error {
	text, hash, fits, err := encodeBase(essence)
	if err != nil {
		return fmt.Errorf("encode the last-handled configuration: %w", err)
	}
	a := s.annotations()
	plain, compressed := s.keys(Marked(o))
	bound := s.boundKey(Marked(o))
	taken := annotationsSize(o, p, append(plain, compressed, bound)) + boundSize(o, bound)
	if !fits { // Load would reject it
		return &TooLargeError{Size: len(text), Compressed: len(text), Room: min(AnnotationsLimit-taken, jsonvalue.MaxStored)}
	}
	if taken+sizeOf(plain, text) <= s.CompressAbove {
		a.put(o, p, plain, text)
		a.purge(o, p, []string{compressed})
		a.bind(o, p, bound, hash)
		return nil
	}
	packed, err := compress(text)
	if err != nil {
		return fmt.Errorf("compress the last-handled configuration: %w", err)
	}
	if taken+sizeOf([]string{compressed}, packed) > AnnotationsLimit {
		return &TooLargeError{Size: len(text), Compressed: len(packed), Room: AnnotationsLimit - taken}
	}
	a.put(o, p, []string{compressed}, packed)
	a.purge(o, p, plain)
	a.bind(o, p, bound, hashOf([]byte(packed)))
	return nil
}

// Clean implements [Base]. It also removes the names used on ReplicaSets of Deployments;
// see CleanObject.
func (s *AnnotationBase) Clean(essence map[string]any) {
	s.clean(essence, func() []string { return append(s.allKeys(false), s.allKeys(true)...) })
}

// CleanObject implements [ObjectCleaner]. A Deployment's annotation that Kubernetes copied
// to a ReplicaSet was not written by this storage for the ReplicaSet, so it stays.
func (s *AnnotationBase) CleanObject(o Object, essence map[string]any) {
	s.clean(essence, func() []string { return s.allKeys(Marked(o)) })
}

// clean removes the keys from an essence. They are computed only if necessary.
func (s *AnnotationBase) clean(essence map[string]any, keys func() []string) {
	for _, path := range s.Ignored {
		jsonvalue.Drop(essence, path...)
	}
	var known []string
	dropAnnotations(essence, func(key string) bool {
		if !s.annotations().own(key) {
			return false
		}
		if known == nil {
			known = keys()
		}
		return slices.Contains(known, key)
	})
	Tidy(essence)
}

func (s *AnnotationBase) annotations() annotations {
	return annotations{prefix: s.Prefix, v1: s.V1}
}

// Validate implements [Validator].
func (s *AnnotationBase) Validate() error {
	if err := checkPrefix(s.Prefix); err != nil {
		return err
	}
	return checkKeys(s.Prefix, s.Key, s.V1)
}

// keys returns the annotations for plain essences, and the one for compressed ones. Kopf
// never reads the latter.
func (s *AnnotationBase) keys(marked bool) (plain []string, compressed string) {
	return Keys(s.Prefix, s.Key, marked, s.V1), firstKey(s.Prefix, s.Key+"-gz", marked)
}

// allKeys returns all annotations of the storage.
func (s *AnnotationBase) allKeys(marked bool) []string {
	plain, compressed := s.keys(marked)
	return append(plain, compressed, s.boundKey(marked))
}
