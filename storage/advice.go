package storage

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Adviser is implemented by storages that accept settings which work, but probably not as
// the user expects. The operator logs the advice once at startup.
type Adviser interface {
	// Advice returns one sentence per problem. Each begins with the place in the user's
	// code, if known. No problems mean an empty list.
	Advice() []string
}

var (
	_ Adviser = (*AnnotationProgress)(nil)
	_ Adviser = (*AnnotationBase)(nil)
	_ Adviser = multiProgress(nil)
	_ Adviser = multiBase(nil)
	_ Adviser = retiredProgress{}
)

// Advice implements [Adviser].
func (s *AnnotationProgress) Advice() []string { return adviseOnPrefix(s.Prefix, s.place) }

// Advice implements [Adviser].
func (s *AnnotationBase) Advice() []string { return adviseOnPrefix(s.Prefix, s.place) }

func (m multiProgress) Advice() []string   { return advice(m) }
func (m multiBase) Advice() []string       { return advice(m) }
func (r retiredProgress) Advice() []string { return advice([]Progress{r.storage}) }

func advice[S any](storages []S) (all []string) {
	for _, storage := range storages {
		if adviser, ok := any(storage).(Adviser); ok {
			all = append(all, adviser.Advice()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// adviseOnPrefix warns of prefixes that look like those of Kopf. When Kopf writes, it
// considers all prefixes that begin with "kopf." as its own, and adds no marker. When it
// reads, it recognizes only its real ones. Gopf does the same.
func adviseOnPrefix(prefix, place string) []string {
	if !strings.HasPrefix(prefix, "kopf.") || prefix == DefaultPrefix || strings.HasSuffix(prefix, "."+DefaultPrefix) {
		return nil
	}
	if place != "" {
		place += ": "
	}
	return []string{fmt.Sprintf("%sannotations with the prefix %q get no marker, because it begins with \"kopf.\": "+
		"other operators on the same objects see them as changes; use another prefix", place, prefix)}
}

// callerOf returns the file and the line of the caller of a constructor.
func callerOf() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file)), line)
}
