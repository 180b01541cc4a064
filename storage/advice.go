package storage

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Adviser is implemented by storages that can be set up in a way that works, but
// hardly as the user expects. The operator logs the advice once at its start.
type Adviser interface {
	// Advice returns one sentence for each problem, with the place in the user's
	// code in front if it is known. It is empty if there are none.
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

// adviseOnPrefix warns of prefixes that look like Kopf's own one. Kopf takes all
// prefixes that begin with "kopf." for its own when it writes, and does not mark
// them. When it reads, it knows only its real ones. We do the same.
func adviseOnPrefix(prefix, place string) []string {
	if !strings.HasPrefix(prefix, "kopf.") || prefix == DefaultPrefix || strings.HasSuffix(prefix, "."+DefaultPrefix) {
		return nil
	}
	if place != "" {
		place += ": "
	}
	return []string{fmt.Sprintf("%sannotations with the prefix %q are not marked as an operator's, because it begins with \"kopf.\": "+
		"other operators on the same objects see them as changes; use another prefix", place, prefix)}
}

// callerOf returns the file and the line of the code that called a constructor.
func callerOf() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file)), line)
}
