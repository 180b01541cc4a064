package storage

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/jsonvalue"
)

// AnnotationsLimit is how many bytes the annotations of an object may have
// together, keys and values; the API server accepts no more.
const AnnotationsLimit = 256 << 10

// AnnotationBase keeps the essence in an annotation of the object itself:
// <prefix>/last-handled-configuration. Make one with [NewAnnotationBase], and
// change the fields before its use.
//
// An essence that is too large for that is compressed and kept in an annotation
// with another name, <prefix>/last-handled-configuration-gz, which Kopf does not
// know. If even that does not fit, Save returns a [*TooLargeError].
//
// A second annotation, <prefix>/gopf.bound, is written along with it. It tells
// copies of the object from the original; see [CopyDetector].
type AnnotationBase struct {
	// Prefix is the domain of the annotation. Operators that handle the same
	// objects must have different ones.
	Prefix string
	// Key is the name of the annotation after the prefix. By default
	// "last-handled-configuration".
	Key string
	// V1 says to write and read the key of old versions of Kopf, too, if it
	// differs. By default on.
	V1 bool
	// Ignored are paths, as lists of keys, whose changes are of no interest:
	// they are removed from essences. By default none.
	Ignored [][]string
	// CompressAbove is how many bytes the annotations of an object may have
	// together, with the essence as it is; above that it is compressed. By
	// default 32 KiB less than [AnnotationsLimit], which leaves room for records
	// of handlers.
	CompressAbove int

	place string // where it was made
}

var (
	_ Base          = (*AnnotationBase)(nil)
	_ ObjectCleaner = (*AnnotationBase)(nil)
	_ Validator     = (*AnnotationBase)(nil)
)

// NewAnnotationBase returns a storage in an annotation of the prefix, with
// everything else as in Kopf by default.
func NewAnnotationBase(prefix string) *AnnotationBase {
	return &AnnotationBase{
		Prefix:        prefix,
		Key:           "last-handled-configuration",
		V1:            true,
		CompressAbove: AnnotationsLimit - 32<<10,
		place:         callerOf(),
	}
}

// TooLargeError says that an essence does not fit into annotations, even
// compressed.
type TooLargeError struct {
	Size       int // of the essence as JSON, in bytes
	Compressed int // the same when compressed
	Room       int // that other annotations of the object leave; negative if these are too many already
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the last-handled configuration is too large for annotations: "+
		"%d bytes, compressed %d, while there is room for %d", e.Size, e.Compressed, e.Room)
}

// Load implements [Base].
func (s *AnnotationBase) Load(_ context.Context, o Object) (essence map[string]any, found bool, err error) {
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

// Save implements [Base]. If it fails, nothing is put into the patch.
func (s *AnnotationBase) Save(_ context.Context, o Object, p Patch, essence map[string]any) error {
	text, err := encodeEssence(essence, "\n")
	if err != nil {
		return fmt.Errorf("write the last-handled configuration: %w", err)
	}
	a := annotations{prefix: s.Prefix, v1: s.V1}
	plain, compressed := s.keys(Marked(o))
	taken := annotationsSize(o, p, append(plain, compressed, s.boundKey(Marked(o)))) + s.boundSize(o)
	if jsonvalue.Check([]byte(text), jsonvalue.MaxStored) != nil { // Load would not read it
		return &TooLargeError{Size: len(text), Compressed: len(text), Room: min(AnnotationsLimit-taken, jsonvalue.MaxStored)}
	}
	if taken+sizeOf(plain, text) <= s.CompressAbove {
		a.put(o, p, plain, text)
		a.purge(o, p, []string{compressed})
		s.bind(o, p, text)
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
	s.bind(o, p, packed)
	return nil
}

// Clean implements [Base]. The names that are used on ReplicaSets of Deployments
// are removed, too; see CleanObject.
func (s *AnnotationBase) Clean(essence map[string]any) {
	plain, compressed := s.keys(false)
	markedPlain, markedCompressed := s.keys(true)
	s.clean(essence, slices.Concat(plain, markedPlain, []string{compressed, markedCompressed, s.boundKey(false), s.boundKey(true)}))
}

// CleanObject implements [ObjectCleaner]: what a Deployment's annotation looks
// like on its ReplicaSet is not a trace of this storage there, and counts.
func (s *AnnotationBase) CleanObject(o Object, essence map[string]any) {
	plain, compressed := s.keys(Marked(o))
	s.clean(essence, append(plain, compressed, s.boundKey(Marked(o))))
}

func (s *AnnotationBase) clean(essence map[string]any, keys []string) {
	for _, path := range s.Ignored {
		fieldpath.Drop(essence, path...)
	}
	dropAnnotations(essence, func(key string) bool { return slices.Contains(keys, key) })
	Tidy(essence)
}

// Validate implements [Validator].
func (s *AnnotationBase) Validate() error {
	if err := checkPrefix(s.Prefix); err != nil {
		return err
	}
	return checkKeys(s.Prefix, s.Key, s.V1)
}

// keys returns the annotations for essences as they are, and the one for those
// that are compressed. Kopf does not look for the latter under any key.
func (s *AnnotationBase) keys(marked bool) (plain []string, compressed string) {
	return Keys(s.Prefix, s.Key, marked, s.V1), Keys(s.Prefix, s.Key+"-gz", marked, false)[0]
}
