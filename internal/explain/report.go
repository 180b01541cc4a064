// Package explain turns the decision of the engine about an object into a report: why
// handlers are called or not, the next step, and the waits of a deletion. All rules are those
// of the engine. It is pure.
package explain

import (
	"slices"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Version is the version of the JSON format. Fields may be added without a new version.
const Version = 1

// Report explains the state of one object. docs/operations.md documents the JSON format.
type Report struct {
	Version  int       `json:"version"`
	Object   Object    `json:"object"`
	Next     string    `json:"next"` // see process.Next
	Summary  string    `json:"summary"`
	Reason   string    `json:"reason"`
	Pause    *Pause    `json:"pause,omitempty"`
	Changes  []Change  `json:"changes,omitempty"`
	More     int       `json:"more,omitempty"` // changes above the limit; see [ChangesOf]
	Handlers []Handler `json:"handlers"`
	Children []Child   `json:"children,omitempty"`
	Deletion Deletion  `json:"deletion"`
	Notes    []string  `json:"notes,omitempty"` // other facts, as sentences
}

// Object identifies the object.
type Object struct {
	APIVersion      string `json:"apiVersion"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Handled         bool   `json:"handled"` // the operator has handled it before
	Deleting        bool   `json:"deleting,omitempty"`
}

// Pause is the pause of the object.
type Pause struct {
	Annotation string     `json:"annotation"`
	Until      *time.Time `json:"until,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Problem    string     `json:"problem,omitempty"`
}

// Change is one difference since the object was last handled.
type Change struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// maxChanges limits the changes in a report. An object can have hundreds of thousands.
const maxChanges = 1000

// ChangesOf returns the first 1,000 changes of a diff for a report, and the number of others.
func ChangesOf(d diff.Diff) (changes []Change, more int) {
	shown := d[:min(len(d), maxChanges)]
	for _, item := range shown {
		changes = append(changes, Change{Op: string(item.Op), Path: jsonvalue.Path(item.Path).String(), Old: item.Old, New: item.New})
	}
	return changes, len(d) - len(shown)
}

// Handler is the state of one handler.
type Handler struct {
	ID        string     `json:"id"`
	Family    string     `json:"family"` // change, daemon, timer, event or reconcile
	Where     string     `json:"where"`  // file:line of the declaration
	Phase     string     `json:"phase"`  // see process.Phase
	Why       string     `json:"why,omitempty"`
	Criterion string     `json:"criterion,omitempty"` // the filter that does not match
	Attempts  int        `json:"attempts,omitempty"`
	Message   string     `json:"message,omitempty"` // of the last error
	Started   *time.Time `json:"started,omitempty"`
	Finished  *time.Time `json:"finished,omitempty"`
	Due       *time.Time `json:"due,omitempty"`       // of the next call
	OnRestart bool       `json:"onRestart,omitempty"` // it is called when the operator starts again
	Subs      []Handler  `json:"subs,omitempty"`
}

// Child is a child in the stored inventory.
type Child struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Deletion names the handlers and children that the deletion waits for.
type Deletion struct {
	Finalizer string   `json:"finalizer"`          // of the operator
	Guarded   bool     `json:"guarded"`            // the object has it
	Requires  []string `json:"requires"`           // the handlers that require it
	Others    []string `json:"others,omitempty"`   // other finalizers
	Children  bool     `json:"children,omitempty"` // children are deleted first
}

// Subject is an object with the decision about it.
type Subject struct {
	Body      *object.Body
	Resource  kind.Info
	Outlook   *process.Outlook
	Finalizer string
	Former    []string // former names of the finalizer
	Timers    map[*handler.Handler]bool
	Selector  string // of the resource; "" means all objects
	Selected  bool   // the object matches it
}

// Of returns the report about an object.
func Of(s Subject) *Report {
	b, o := s.Body, s.Outlook
	r := &Report{
		Version: Version, Next: string(o.Next), Reason: string(o.Reason),
		Object: Object{
			APIVersion: s.Resource.APIVersion(), Kind: s.Resource.Kind, Namespace: b.Namespace, Name: b.Name, UID: b.UID,
			ResourceVersion: b.ResourceVersion, Handled: o.Known, Deleting: b.Deleting,
		},
	}
	if p := o.Pause; p != nil {
		r.Pause = &Pause{Annotation: p.Key, Until: moment(p.Until), Reason: p.Reason, Problem: p.Problem}
	}
	if o.Known {
		r.Changes, r.More = ChangesOf(o.Diff)
	}
	add := func(forecasts []process.Forecast, family func(*handler.Handler) string) {
		for _, f := range forecasts {
			r.Handlers = append(r.Handlers, handlerOf(f, family(f.Handler)))
		}
	}
	always := func(family string) func(*handler.Handler) string {
		return func(*handler.Handler) string { return family }
	}
	add(o.Changes, always("change"))
	add(o.Reconcile, always("reconcile"))
	add(o.Background, func(h *handler.Handler) string {
		if s.Timers[h] {
			return "timer"
		}
		return "daemon"
	})
	add(o.Watchers, always("event"))
	for _, c := range o.Children {
		r.Children = append(r.Children, Child{c.APIVersion, c.Kind, c.Namespace, c.Name})
	}
	r.Deletion = deletionOf(s)
	r.note(s)
	r.Summary = r.summarize()
	return r
}

// note adds facts that have no fields.
func (r *Report) note(s Subject) {
	if !s.Selected {
		r.Notes = append(r.Notes, "The operator does not see the object: its labels do not match the selector \""+s.Selector+"\".")
	}
	if s.Outlook.Copied {
		r.Notes = append(r.Notes, "The stored state belongs to another object and is ignored.")
	}
}

func handlerOf(f process.Forecast, family string) Handler {
	h := Handler{ID: f.Handler.ID, Family: family, Where: f.Handler.Where, Phase: string(f.Phase), Why: f.Why, Criterion: f.Miss.Criterion.String(), OnRestart: f.Resuming}
	if f.Record != nil {
		h.record(*f.Record)
	}
	if h.Due = nil; f.Phase == process.Delayed {
		h.Due = moment(f.Until)
	}
	for _, id := range recordedSubs(f) {
		sub := Handler{ID: id, Family: family, Phase: phaseOf(f.Subs[id])}
		sub.record(f.Subs[id])
		h.Subs = append(h.Subs, sub)
	}
	return h
}

func recordedSubs(f process.Forecast) (ids []string) {
	if f.Record == nil {
		return nil
	}
	for _, id := range f.Record.Subrefs { // sorted
		if _, ok := f.Subs[id]; ok {
			ids = append(ids, id)
		}
	}
	return slices.Compact(ids) // forged ones may be repeated
}

func phaseOf(r storage.Record) string {
	switch {
	case r.Success:
		return string(process.Succeeded)
	case r.Failure:
		return string(process.Failed)
	case !r.Delayed.IsZero():
		return string(process.Delayed)
	}
	return string(process.Due)
}

// record adds the facts of a stored record.
func (h *Handler) record(r storage.Record) {
	h.Attempts, h.Started, h.Finished, h.Due = r.Retries, moment(r.Started), moment(r.Stopped), moment(r.Delayed)
	if r.Message != nil {
		h.Message = *r.Message
	}
}

func deletionOf(s Subject) Deletion {
	d := Deletion{Finalizer: s.Finalizer, Guarded: s.Outlook.Guarded, Requires: []string{}}
	ours := func(name string) bool {
		if name == s.Finalizer {
			return true
		}
		for _, former := range s.Former {
			if name == former {
				return true
			}
		}
		return false
	}
	for _, name := range s.Body.Finalizers() {
		if !ours(name) {
			d.Others = append(d.Others, name)
		}
	}
	seen := map[string]bool{}
	for _, list := range [][]process.Forecast{s.Outlook.Changes, s.Outlook.Background} {
		for _, f := range list {
			// The present reason does not matter here: the handlers are those of a deletion.
			matches := f.Phase != process.Unmatched || f.Miss.Criterion == handler.OfReason
			if f.Handler.Mandatory && matches && !seen[f.Handler.ID] && !(f.Phase == process.Succeeded && s.Body.Deleting) {
				seen[f.Handler.ID] = true
				d.Requires = append(d.Requires, f.Handler.ID)
			}
		}
	}
	d.Children = s.Outlook.Ordered
	return d
}

// moment returns a time for JSON; nil means none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
