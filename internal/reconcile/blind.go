package reconcile

import (
	"time"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
)

// Some aggregated API servers do not keep managedFields. Changes of other clients cannot
// be recognized then: a child that differs in any way from the response to the last apply
// is applied again, but not more often than blindInterval.
const blindInterval = time.Minute

// blindApply is the last apply of a child without managedFields.
type blindApply struct {
	at      time.Time
	version string // the resource version in the response
}

func (f *Fights) appliedBlindly(k children.Key, version string, now time.Time) {
	if len(f.blindly) >= children.MaxEntries { // the names of children may change again and again
		f.blindly = nil
	}
	if f.blindly == nil {
		f.blindly = map[children.Key]blindApply{}
	}
	f.blindly[k.Clone()] = blindApply{now, version}
}

// blind reports whether a child without managedFields must be applied again now. wait is
// the time until that is allowed; 0 means that it is not necessary.
func (f *Fights) blind(k children.Key, version string, now time.Time) (due bool, wait time.Duration) {
	last, known := f.blindly[k]
	switch passed := now.Sub(last.at); {
	case !known:
		return true, 0
	case last.version == version:
		return false, 0
	case passed < blindInterval:
		return false, blindInterval - passed
	}
	return true, 0
}

// applyBlindly reports whether a child without managedFields must be applied again now.
func (x *run) applyBlindly(w *handler.Wanted, child *childwatch.Child) bool {
	due, wait := x.Fights.blind(w.Key, child.Version(), time.Now())
	if wait > 0 && (x.result.Again == 0 || wait < x.result.Again) {
		x.result.Again = wait
	}
	return due
}

// reportBlindness logs once per kind that the API server keeps no managedFields.
func (x *run) reportBlindness(w *handler.Wanted) {
	kind := w.APIVersion + " " + w.Kind
	if _, told := x.Runner.blind.LoadOrStore(kind, true); !told {
		x.Log.Warn("The API server keeps no managedFields for a kind of children. They are applied again after each change, at most once a minute.", "kind", kind)
	}
}
