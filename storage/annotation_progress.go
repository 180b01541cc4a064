package storage

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// AnnotationProgress stores the records of handlers in annotations of the objects, one
// for each handler: <prefix>/<id>. Create one by [NewAnnotationProgress], and change the
// fields only before its first use.
type AnnotationProgress struct {
	// Prefix is the domain of the annotations. Operators that handle the same objects must
	// use different prefixes.
	Prefix string
	// V1 also writes and reads the keys of old versions of Kopf, where they differ.
	// Default: true.
	V1 bool
	// Verbose writes nulls for the absent fields of a record. Default: false.
	Verbose bool
	// TouchKey is the name of the annotation by which Kopf wakes itself; see
	// [Untoucher]. Default: "touch-dummy".
	TouchKey string

	place string // of the constructor call, for Advice
}

var (
	_ Progress  = (*AnnotationProgress)(nil)
	_ Untoucher = (*AnnotationProgress)(nil)
	_ Validator = (*AnnotationProgress)(nil)
	_ IDChecker = (*AnnotationProgress)(nil)
	_ Placed    = (*AnnotationProgress)(nil)
)

// NewAnnotationProgress returns a storage in annotations with the prefix. The other fields
// have Kopf's defaults.
func NewAnnotationProgress(prefix string) *AnnotationProgress {
	return &AnnotationProgress{Prefix: prefix, V1: true, TouchKey: "touch-dummy", place: callerOf()}
}

// maxAliases limits the ids for which one call of Load decodes the same annotation. Different
// ids may have the same annotation, because some characters are replaced in its name. The ids
// of sub-handlers come from other records, which any client that may edit the object can
// forge: thousands of them could have one annotation with a large record.
const maxAliases = 8

// InStatus implements [Placed].
func (s *AnnotationProgress) InStatus() bool { return false }

// Load implements [Progress].
func (s *AnnotationProgress) Load(_ context.Context, o Object, ids []string) (map[string]Record, error) {
	if !s.annotations().in(o) {
		return nil, nil // as for all new objects
	}
	records := make(map[string]Record)
	var damaged damage
	var reads map[string]int
	for _, id := range ids {
		if _, known := records[id]; known {
			continue
		}
		for key, value := range values(o, s.annotations().keys(o, id)) {
			if len(ids) > maxAliases {
				if reads == nil {
					reads = make(map[string]int)
				}
				if reads[key]++; reads[key] > maxAliases {
					continue
				}
			}
			record, found, err := decodeRecord([]byte(value))
			if err != nil {
				damaged.add(id, "the annotation "+key, err)
				continue // the other key may have a readable one
			}
			if found {
				records[id] = record
				delete(damaged, id)
				break
			}
		}
	}
	return records, damaged.err()
}

// Save implements [Progress].
func (s *AnnotationProgress) Save(_ context.Context, o Object, p Patch, changed map[string]Record, purge []string) error {
	a := s.annotations()
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if slices.Contains(purge, id) { // purge wins, so there is nothing to write
			a.mark(o, p)
			continue
		}
		a.put(o, p, a.keys(o, id), changed[id].Encode(s.Verbose))
	}
	if !a.in(o) && !a.in(p) {
		return nil
	}
	for _, id := range purge {
		a.purge(o, p, a.keys(o, id))
	}
	return nil
}

// Clean implements [Progress]. It removes all annotations with the prefix.
func (s *AnnotationProgress) Clean(essence map[string]any) {
	dropAnnotations(essence, func(key string) bool { return strings.HasPrefix(key, s.Prefix+"/") })
	Tidy(essence)
}

// Untouch implements [Untoucher].
func (s *AnnotationProgress) Untouch(o Object, p Patch) {
	a := s.annotations()
	for key := range values(o, a.keys(o, s.TouchKey)) {
		p.Set(nil, "metadata", "annotations", key)
		a.mark(o, p)
	}
}

// Validate implements [Validator].
func (s *AnnotationProgress) Validate() error {
	return checkPrefix(s.Prefix)
}

// CheckID implements [IDChecker], because the names of annotations are restricted.
func (s *AnnotationProgress) CheckID(id string) error {
	return checkKeys(s.Prefix, id, s.V1)
}

func (s *AnnotationProgress) annotations() annotations {
	return annotations{prefix: s.Prefix, v1: s.V1}
}
