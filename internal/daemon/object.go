package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// Object is what is kept of one object with daemons or timers. A nil one has
// none.
type Object struct {
	set   *Set
	key   string
	again func(*object.Body) *registry.Request

	mu        sync.Mutex
	body      *object.Body // the newest, and not decoded; nil without tasks
	responded string       // the version of the response to the last write; "" if the object was written to beside
	touched   time.Time    // when its essence has changed, or it was first seen
	tasks     []*Task
	over      []*Spec // those that are not to be spawned again
	gone      bool    // nobody cares about it anymore
}

// See swaps the live view of the object. Sight does that, too: this is for
// events that do not come so far.
func (o *Object) See(body *object.Body) {
	if o == nil {
		return
	}
	var then deeds
	o.mu.Lock()
	o.see(body, time.Now(), &then)
	o.mu.Unlock()
	then.do()
}

func (o *Object) see(body *object.Body, now time.Time, then *deeds) {
	if len(o.tasks) == 0 {
		o.body = nil
		return
	}
	if o.responded == "" || o.body == nil || o.responded != o.body.ResourceVersion || !o.body.Newer(body.Identity) {
		o.body = undecoded(body) // unless the response to our own write is newer
	}
	for _, t := range o.tasks {
		if t.unfit && t.run == nil && t.stop == nil { // maybe it fits now
			t.hurried = true
			t.proceed(now, then)
		}
	}
}

// Body is the newest state of the object that is known; nil if none of its
// tasks needed it since the last sight.
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
	return undecoded(body)
}

// write sends a patch of the object, and takes note of the response. The body is
// the newest known state. fresh says that the caller has not written to the object
// by other means.
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
	case after.ResourceVersion == o.body.ResourceVersion:
		o.responded = after.ResourceVersion
	case after.Newer(o.body.Identity):
		o.body, o.responded = undecoded(after), after.ResourceVersion
	default: // the stream was faster
		o.responded = ""
	}
	return nil
}

// Outdate notes that the object was written to beside its tasks, so that its state
// as they know it is not the response to the last write any more.
func (o *Object) Outdate() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.responded = ""
	o.mu.Unlock()
}

// undecoded is a body of the same bytes. What is kept for long must never be
// decoded, because what it is decoded to would be kept along.
func undecoded(b *object.Body) *object.Body { return b.Undecoded() }

// Hurry makes those tasks be called now that wait for their time and whose ids
// are urgent. A timer that is being called is called once more.
func (o *Object) Hurry(urgent func(id string) bool) {
	if o == nil {
		return
	}
	var then deeds
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

// Forget stops all tasks because the object is gone, or not served anymore.
// Nothing is spawned for it again, and it is not woken.
func (o *Object) Forget(why error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.gone = true
	o.mu.Unlock()
	o.stopAll(why)
}

func (o *Object) stopAll(why error) {
	var then deeds
	o.mu.Lock()
	now := time.Now()
	for _, t := range slices.Clone(o.tasks) {
		t.halt(why, now, &then)
	}
	o.mu.Unlock()
	then.do()
}

// wake gives the object a turn, unless nobody cares anymore.
func (o *Object) wake() {
	o.mu.Lock()
	gone := o.gone
	o.mu.Unlock()
	if !gone && o.set.halted.Load() == nil {
		o.set.Wake(o.key)
	}
}

// IDs are the ids of the tasks that wait or run, and of those that are over for
// this process, both in the order of their coming.
func (o *Object) IDs() (tasks, over []string) {
	if o == nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.tasks {
		tasks = append(tasks, t.spec.ID)
	}
	for _, spec := range o.over {
		over = append(over, spec.ID)
	}
	return tasks, over
}

func (o *Object) isOver(spec *Spec) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.over, spec)
}

// missing are those that are to be spawned.
func (o *Object) missing(matching []*Spec) (missing []*Spec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, spec := range matching {
		if slices.Contains(o.over, spec) || slices.ContainsFunc(o.tasks, func(t *Task) bool { return t.spec == spec }) {
			continue
		}
		missing = append(missing, spec)
	}
	return missing
}

// update makes the tasks be those that match and are not over, as far as
// possible now.
func (o *Object) update(seen Sighting, matching []*Spec, starts map[*Spec]time.Duration) (*Object, registry.Opt[time.Duration]) {
	var then deeds
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
		case !slices.Contains(matching, t.spec):
			t.halt(ErrUnmatched, now, &then)
		}
	}
	spawned := o.spawn(starts, now)
	o.see(body, now, &then)
	for _, t := range o.tasks {
		if slices.Contains(spawned, t) || seen.Changed && t.spec.Idle > 0 && t.run == nil {
			t.proceed(now, &then)
		}
	}
	if len(o.tasks)+len(o.over) == 0 && !o.gone {
		return nil, registry.Opt[time.Duration]{}
	}
	return o, o.due(now)
}

// spawn adds tasks, unless the operator pauses or exits.
func (o *Object) spawn(starts map[*Spec]time.Duration, now time.Time) (spawned []*Task) {
	if len(starts) == 0 || o.gone {
		return nil
	}
	// Whoever halts the set finds either this object among the others, or
	// nothing spawned.
	o.set.register(o)
	for _, spec := range o.set.Specs { // in their order
		if delay, ok := starts[spec]; ok && o.set.halted.Load() == nil {
			t := &Task{object: o, spec: spec}
			t.from = now.Add(delay)
			spawned = append(spawned, t)
		}
	}
	o.tasks = append(o.tasks, spawned...)
	if len(o.tasks) == 0 {
		o.set.unregister(o)
	}
	return spawned
}

// due is the time until the next stage of the stops that a deletion must wait
// for.
func (o *Object) due(now time.Time) (due registry.Opt[time.Duration]) {
	for _, t := range o.tasks {
		if t.stop == nil || t.stop.abandoned || !t.spec.Mandatory {
			continue
		}
		// Never 0: a stage takes its time, in which turns are of no use.
		if d := max(instant, t.stop.due().Sub(now)); !due.Set || d < due.Is {
			due = registry.Some(d)
		}
	}
	return due
}

// deeds are things to be done when the lock is released, in their order: to log,
// to cancel, to wake.
type deeds []func()

func (d *deeds) add(fn func()) { *d = append(*d, fn) }

func (d deeds) do() {
	for _, fn := range d {
		fn()
	}
}
