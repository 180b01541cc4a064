package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// Object is the state of one object with daemons or timers. A nil *Object has none.
type Object struct {
	set   *Set
	key   string
	again func(*object.Body) *handler.Request

	mu        sync.Mutex
	body      *object.Packed // the newest version; nil without tasks
	responded string         // version in the response to the last write; empty after other writes to the object
	touched   time.Time      // last change of the essence, or first sight
	tasks     []*Task
	former    []former
	gone      bool // deleted, or no longer served
}

// former is a task that has ended, and is remembered. One slice for both kinds takes less memory
// than two. Most objects have none.
type former struct {
	spec *Spec
	// paused is the timer, if a pause of the object has ended it: it continues its schedule after
	// that. nil means that the spec is over: it must not be spawned again.
	paused *Task
}

// over reports whether the spec must not be spawned again. The lock must be held.
func (o *Object) over(spec *Spec) bool { return slices.Contains(o.former, former{spec: spec}) }

// dropPaused drops the schedules of paused timers for which drop returns true. The lock must be held.
func (o *Object) dropPaused(drop func(*Spec) bool) {
	o.former = slices.DeleteFunc(o.former, func(f former) bool { return f.paused != nil && drop(f.spec) })
}

func always(*Spec) bool { return true }

// See updates the live view of the object for events that do not reach Sight.
func (o *Object) See(body *object.Body) {
	if o == nil {
		return
	}
	var then actions
	o.mu.Lock()
	o.see(body, time.Now(), &then)
	o.mu.Unlock()
	then.do()
}

func (o *Object) see(body *object.Body, now time.Time, then *actions) {
	if len(o.tasks) == 0 {
		o.body = nil
		return
	}
	if o.responded == "" || o.body == nil || !o.body.HasVersion(o.responded) || !o.body.Newer(body.Identity) {
		o.body = o.set.packer.Pack(body) // unless the response to our own write is newer
	}
	for _, t := range o.tasks {
		if t.unfit && t.run == nil && t.stop == nil { // it may be decodable now
			t.hurried = true
			t.proceed(now, then)
		}
	}
}

// Body returns the newest known version of the object. nil means that it has no tasks.
func (o *Object) Body() *object.Body {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	body := o.body
	o.mu.Unlock()
	if body == nil {
		return nil
	}
	return body.Body()
}

// lane returns the line in which the timers of the object wait. The lock must be held.
func (o *Object) lane() Lane {
	if o.body == nil {
		return Lane{}
	}
	namespace, _ := o.body.Names()
	return Lane{Namespace: namespace, Large: o.body.Unpacked() >= largeObject}
}

// size returns the bytes of the JSON of the object.
func (o *Object) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.body == nil {
		return 0
	}
	return o.body.Unpacked()
}

// write sends a patch of the object and records the response. body is the newest known
// version. fresh means that the caller has not written to the object by other means.
func (o *Object) write(ctx context.Context, body *object.Body, p *patch.Patch, fresh bool) error {
	o.mu.Lock()
	fresh = fresh && o.responded != "" && o.responded == body.ResourceVersion
	o.mu.Unlock()
	after, err := o.set.Write(ctx, body, p, fresh)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.body == nil:
	case o.body.HasVersion(after.ResourceVersion):
		o.responded = after.ResourceVersion
	case o.body.Older(after.Identity):
		o.body, o.responded = o.set.packer.Pack(after), after.ResourceVersion
	default: // the stream was faster
		o.responded = ""
	}
	return nil
}

// Outdate records a write to the object outside of its tasks. Their known version is
// then no longer the response to the last write.
func (o *Object) Outdate() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.responded = ""
	o.mu.Unlock()
}

// Hurry calls now those waiting tasks for whose ids urgent returns true. A timer that
// is being called is called once more afterwards.
func (o *Object) Hurry(urgent func(id string) bool) {
	if o == nil {
		return
	}
	var then actions
	o.mu.Lock()
	now := time.Now()
	for _, t := range o.tasks {
		if urgent(t.spec.ID) && t.stop == nil && (t.run == nil || t.spec.Timer) {
			t.hurried = true
			t.proceed(now, &then)
		}
	}
	o.mu.Unlock()
	then.do()
}

// Forget stops all tasks because the object was deleted or is no longer served. No task
// is spawned for it again, and it is not woken.
func (o *Object) Forget(why error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.gone = true
	o.dropPaused(always)
	o.mu.Unlock()
	o.stopAll(why)
}

func (o *Object) stopAll(why error) {
	var then actions
	o.mu.Lock()
	now := time.Now()
	for _, t := range slices.Clone(o.tasks) {
		t.halt(why, now, &then)
	}
	o.mu.Unlock()
	then.do()
}

// wake gives the object a turn, unless it was forgotten or the set is halted.
func (o *Object) wake() {
	o.mu.Lock()
	gone := o.gone
	o.mu.Unlock()
	if !gone && o.set.halted.Load() == nil {
		o.set.Wake(o.key)
	}
}

// IDs returns the ids of the tasks that wait or run, and of those that are over for
// this process. Both are in the order of spawning.
func (o *Object) IDs() (tasks, over []string) {
	if o == nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.tasks {
		tasks = append(tasks, t.spec.ID)
	}
	for _, f := range o.former {
		if f.paused == nil {
			over = append(over, f.spec.ID)
		}
	}
	return tasks, over
}

func (o *Object) isOver(spec *Spec) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over(spec)
}

// missing returns the matching specs without a task that are not over.
func (o *Object) missing(matching []*Spec) (missing []*Spec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, spec := range matching {
		if o.over(spec) || slices.ContainsFunc(o.tasks, func(t *Task) bool { return t.spec == spec }) {
			continue
		}
		missing = append(missing, spec)
	}
	return missing
}

// update spawns and stops tasks to match the specs, as far as possible now.
func (o *Object) update(seen Sighting, matching []*Spec, starts map[*Spec]time.Duration) (*Object, handler.Opt[time.Duration]) {
	var then actions
	defer func() { then.do() }()
	o.mu.Lock()
	defer o.mu.Unlock()
	now, body := time.Now(), seen.Request.Body
	if seen.Changed {
		o.touched = now
	}
	for _, t := range slices.Clone(o.tasks) {
		switch {
		case body.Deleting:
			t.halt(ErrDeleted, now, &then)
		case seen.Paused:
			t.suspend(now, &then)
		case !slices.Contains(matching, t.spec):
			t.halt(ErrUnmatched, now, &then)
		}
	}
	spawned := o.spawn(starts, now)
	o.forgetSchedules(seen, matching)
	o.see(body, now, &then)
	for _, t := range o.tasks {
		if slices.Contains(spawned, t) || seen.Changed && t.spec.Idle > 0 && t.run == nil {
			t.proceed(now, &then)
		}
	}
	if len(o.tasks)+len(o.former) == 0 && !o.gone {
		return nil, handler.Opt[time.Duration]{}
	}
	return o, o.due(now)
}

// spawn adds tasks, unless the operator pauses or exits.
func (o *Object) spawn(starts map[*Spec]time.Duration, now time.Time) (spawned []*Task) {
	if len(starts) == 0 || o.gone {
		return nil
	}
	// Register first: a concurrent halt then either finds this object or prevents the
	// spawning.
	o.set.register(o)
	for _, spec := range o.set.Specs { // in order of declaration
		if delay, ok := starts[spec]; ok && o.set.halted.Load() == nil {
			t := &Task{object: o, spec: spec}
			t.from = now.Add(delay)
			o.resume(t)
			spawned = append(spawned, t)
		}
	}
	o.tasks = append(o.tasks, spawned...)
	if len(o.tasks) == 0 {
		o.set.unregister(o)
	}
	return spawned
}

// resume gives a new task the schedule of the timer that a pause has ended, if there is
// one.
func (o *Object) resume(t *Task) {
	i := slices.IndexFunc(o.former, func(f former) bool { return f.paused != nil && f.spec == t.spec })
	if i < 0 {
		return
	}
	paused := o.former[i].paused
	o.former = slices.Delete(o.former, i, i+1)
	t.timing, t.retries, t.failing, t.unfit, t.misfit = paused.timing, paused.retries, paused.failing, paused.unfit, paused.misfit
}

// forgetSchedules drops the schedules of paused timers if the object is being deleted,
// and those whose filters do not match after the pause.
func (o *Object) forgetSchedules(seen Sighting, matching []*Spec) {
	switch {
	case seen.Request.Body.Deleting:
		o.dropPaused(always)
	case !seen.Paused:
		o.dropPaused(func(spec *Spec) bool { return !slices.Contains(matching, spec) })
	}
}

// due returns the time until the next stage of the stops that a deletion must wait for.
func (o *Object) due(now time.Time) (due handler.Opt[time.Duration]) {
	for _, t := range o.tasks {
		if t.stop == nil || t.stop.abandoned || !t.spec.Mandatory {
			continue
		}
		// Never 0: a stage takes some time, during which turns are useless.
		if d := max(instant, t.stop.due().Sub(now)); !due.Set || d < due.Is {
			due = handler.Some(d)
		}
	}
	return due
}

// actions are functions to call in order after the lock is released: logging,
// canceling, waking.
type actions []func()

func (d *actions) add(fn func()) { *d = append(*d, fn) }

func (d actions) do() {
	for _, fn := range d {
		fn()
	}
}
