package process

import (
	"context"
	"slices"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/pause"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// Next is the step of the next turn of an object.
type Next string

// The next steps.
const (
	NextNothing         Next = "nothing"         // the object is as it was handled last
	NextCall            Next = "call"            // handlers are called
	NextWait            Next = "wait"            // all unfinished handlers are delayed
	NextFinish          Next = "finish"          // no handler takes part; the handling ends with a write
	NextAddFinalizer    Next = "addFinalizer"    // before any handler is called
	NextRemoveFinalizer Next = "removeFinalizer" // no handler requires it, or the deletion is handled
	NextSend            Next = "send"            // stored changes of handlers are sent
	NextTidy            Next = "tidy"            // state that is no longer needed is removed
	NextPaused          Next = "paused"          // until another client removes the annotation, or until its end
	NextElsewhere       Next = "elsewhere"       // the object belongs to another operator
	NextUnmatched       Next = "unmatched"       // no change handler matches
	NextDeleteChildren  Next = "deleteChildren"  // the object is being deleted, and children must be gone first
)

// Outlook is the decision about the next turn of an object, as data. The engine decides the
// same in a process that has no other work with the object.
type Outlook struct {
	Next     Next
	Reason   cause.Reason
	Known    bool      // the object was handled before
	Diff     diff.Diff // since it was last handled; values of Secrets are masked
	Copied   bool      // the stored state belongs to another object, and is ignored
	Guarded  bool      // the object has the finalizer
	Guarding bool      // handlers, daemons or children require the finalizer
	Pause    *pause.Pause

	Changes    []Forecast // change handlers
	Background []Forecast // daemons and timers
	Watchers   []Forecast // event handlers
	Reconcile  []Forecast // reconcile handlers
	Children   []children.Entry
	Ordered    bool // the deletion of the object waits for its children
}

// Phase is the state of one handler of an object.
type Phase string

// The phases.
const (
	Due       Phase = "due"       // it is called in the next turn
	Delayed   Phase = "delayed"   // it is called again later
	Succeeded Phase = "succeeded" // it has finished
	Failed    Phase = "failed"    // it has failed permanently
	Exhausted Phase = "exhausted" // it fails in the next turn, because of its limits
	Unmatched Phase = "unmatched" // it is not called
	Matched   Phase = "matched"   // daemons, timers, event and reconcile handlers: it applies to the object
	Blocked   Phase = "blocked"   // it matches, but another step comes first
)

// Forecast is the outlook for one handler.
type Forecast struct {
	Handler  *handler.Handler
	Phase    Phase
	Miss     handler.Miss    // why it is unmatched
	Why      string          // the same as text, or why it is exhausted
	Record   *storage.Record // its progress; nil means none
	Until    time.Time       // the end of the delay
	Subs     map[string]storage.Record
	Resuming bool // it would match if the process started now
}

// Outlook returns the decision about the next turn of the object. restarted means that the
// process has just started: resume handlers take part. It changes nothing, but calls the
// filters of the handlers. The processor must not run turns of the same object meanwhile.
func (p *Processor) Outlook(ctx context.Context, body *object.Body, restarted bool) (*Outlook, error) {
	m := memoryOf(body.Identity, restarted)
	v, err := p.viewOf(ctx, m, body, true)
	if err != nil {
		return nil, err
	}
	v.asking = v.request()
	if err := v.expectTeardown(ctx); err != nil {
		return nil, err
	}
	c := v.forHandlers(v.cause)
	o := &Outlook{Reason: c.Reason, Known: v.base != nil, Diff: c.Diff, Copied: v.copied, Guarded: v.blocked, Ordered: v.ownsInOrder}
	o.observers(v)
	if err := o.reconcilers(ctx, v); err != nil {
		return nil, err
	}
	if v.handedOver() {
		o.Next = NextElsewhere
		return o, o.block(ctx, v)
	}
	if o.Pause = v.pause; v.pause != nil {
		o.Next = NextPaused
		return o, o.block(ctx, v)
	}
	interested, mustBlock := v.interested(ctx)
	o.Guarding = mustBlock
	switch v.course(interested, mustBlock) {
	case thenGuard:
		o.Next = NextAddFinalizer
		return o, o.block(ctx, v)
	case thenUnguard:
		o.Next = NextRemoveFinalizer
		return o, o.block(ctx, v)
	case thenSkip:
		o.Next = NextUnmatched
		switch {
		case v.tearing:
			o.Next = NextDeleteChildren
		case body.Deleting && v.blocked && !v.staying.Set:
			o.Next = NextRemoveFinalizer
		}
		return o, o.block(ctx, v)
	}
	return o, o.handle(ctx, v)
}

// handle adds the decision about an object that is handled.
func (o *Outlook) handle(ctx context.Context, v *view) error {
	if v.cause.Reason == cause.Free {
		o.Next = NextNothing
		return o.block(ctx, v)
	}
	h, err := v.open(ctx)
	if err != nil {
		return err
	}
	if h.sendTodo(&change{}) != nil {
		o.Next = NextSend
		return o.block(ctx, v)
	}
	switch h.dealing() {
	case thenTakeBack, thenHideBase, thenDropNote:
		o.Next = NextTidy
		return o.block(ctx, v)
	case thenNothing:
		o.Next = NextNothing
		return o.block(ctx, v)
	case thenCatchUp:
		h.reason = cause.Update
	}
	o.Reason = h.reason
	now := time.Now()
	h.note.Continue(h.reason)
	selected, ids := h.choose(now)
	due := h.state.Due(ids, now)
	for _, declared := range v.Handlers {
		o.Changes = append(o.Changes, h.forecast(declared, selected, due, now))
	}
	switch {
	case len(due) > 0:
		o.Next = NextCall
	case !h.state.Done(ids):
		o.Next = NextWait
	case v.body.Deleting && v.blocked && !v.staying.Set:
		o.Next = NextRemoveFinalizer
	case v.tearing:
		o.Next = NextDeleteChildren
	default:
		o.Next = NextFinish
	}
	return h.loadSubs(ctx, o.Changes)
}

// forecast returns the outlook for a change handler in a handling.
func (h *handling) forecast(declared *handler.Handler, selected handler.Set, due []string, now time.Time) Forecast {
	f := Forecast{Handler: declared}
	if !slices.Contains(selected, declared) {
		f.miss(h.view, declared.Miss(h.asking))
		return f
	}
	record := h.state.Record(declared.ID)
	if record.Retries > 0 || record.Finished() || !record.Delayed.IsZero() {
		f.Record = &record
	}
	attempt := execute.Attempt{Title: "Handler", ID: declared.ID, Limits: declared.Limits, Retries: record.Retries, Started: progress.TimeoutStart(record.Started, now)}
	exhausted, err := attempt.Exhausted()
	switch {
	case record.Success:
		f.Phase = Succeeded
	case record.Failure:
		f.Phase = Failed
	case !slices.Contains(due, declared.ID):
		f.Phase = Delayed
		f.Until = now.Add(h.state.Delay([]string{declared.ID}, now).Is)
	case exhausted:
		f.Phase, f.Why = Exhausted, err.Error()
	default:
		f.Phase = Due
	}
	return f
}

// block adds the change handlers of an object for which another step comes first, or none.
func (o *Outlook) block(ctx context.Context, v *view) error {
	records, err := v.Config.Progress.Load(ctx, v.stored, v.Handlers.IDs())
	if err = v.ignoreMalformed(err); err != nil {
		return err
	}
	for _, h := range v.Handlers {
		f := Forecast{Handler: h, Phase: Blocked}
		if r, ok := records[h.ID]; ok && !v.copied {
			f.Record = &r
		}
		if missed := h.Miss(v.asking); missed != (handler.Miss{}) {
			f.miss(v, missed)
		}
		o.Changes = append(o.Changes, f)
	}
	return nil
}

// miss notes why a handler is not called, and whether it would be after a restart.
func (f *Forecast) miss(v *view, missed handler.Miss) {
	f.Phase, f.Miss = Unmatched, missed
	f.Why = f.Handler.Explain(missed, v.asking)
	if missed.Criterion == handler.Met { // another handler of the same id comes first, or it matches only another cause
		f.Why = "another handler of this id is called, or it has seen the present state"
	}
	if missed.Criterion == handler.OfReason && !v.cause.Initial && f.Handler.Reasons[cause.Resume] {
		restarted, asking := *v.asking.Cause, *v.asking
		restarted.Initial, asking.Cause = true, &restarted
		f.Resuming = v.cause.Reason != cause.Create && f.Handler.Matches(&asking)
	}
}

// observers adds the handlers that see the current object only.
func (o *Outlook) observers(v *view) {
	request := v.plainRequest(v.memory, v.body)
	add := func(to *[]Forecast, h *handler.Handler) {
		f := Forecast{Handler: h, Phase: Matched}
		if missed := h.EventMiss(request); missed != (handler.Miss{}) {
			f.Phase, f.Miss, f.Why = Unmatched, missed, h.Explain(missed, request)
		}
		*to = append(*to, f)
	}
	if v.Daemons != nil {
		for _, spec := range v.Daemons.Specs {
			add(&o.Background, spec.Handler)
		}
	}
	for _, h := range v.Watchers {
		add(&o.Watchers, h)
	}
	for i := range o.Background {
		f := &o.Background[i]
		switch {
		case f.Phase == Unmatched:
		case v.body.Deleting:
			f.Phase, f.Why = Unmatched, "the object is being deleted"
		case v.pause != nil:
			f.Phase, f.Why = Blocked, "the object is paused"
		case f.Handler.Mandatory && !v.blocked:
			f.Phase, f.Why = Blocked, "the object needs the finalizer first"
		}
	}
}

// loadSubs adds the records of sub-handlers.
func (h *handling) loadSubs(ctx context.Context, forecasts []Forecast) error {
	for i := range forecasts {
		f := &forecasts[i]
		if f.Record == nil || len(f.Record.Subrefs) == 0 || h.copied {
			continue
		}
		ids := slices.Compact(slices.Sorted(slices.Values(f.Record.Subrefs))) // forged ones may be repeated
		subs, err := h.Config.Progress.Load(ctx, h.stored, ids)
		if err = h.ignoreMalformed(err); err != nil {
			return err
		}
		f.Subs = subs
	}
	return nil
}
