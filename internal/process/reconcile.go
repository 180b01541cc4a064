package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/pause"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Reconcile has the reconcile handlers of a resource and their means.
type Reconcile struct {
	Handlers handler.Set
	Runner   *reconcile.Runner
	// Listed reports whether the children of the handler are listed. Before that, it is
	// not called.
	Listed func(*handler.Handler) bool
	// Conditions reports whether the status of the resource can have the conditions and
	// the observed generation. It may send requests.
	Conditions func(ctx context.Context, info kind.Info) (conditions, observed bool)
	// References has the objects that are no children, but call handlers.
	References *childwatch.References

	packer object.Packer
}

// The delays of reconcile handlers after errors, if they declare none.
const (
	firstBackoff = time.Second
	mostBackoff  = 5 * time.Minute
)

var defaultBackoff = backoff.Backoff{First: firstBackoff, Most: mostBackoff}

// backoffJitter is the part of such a delay that jitter may remove.
const backoffJitter = 0.1

// reconcile calls the reconcile handlers that are due, after the change handlers of the
// turn. last is the newest state of the object; nil means the one that is known.
func (p *Processor) reconcile(ctx context.Context, m *Memory, last *object.Body, why Occasion) {
	if p.Reconcile == nil || m.ended {
		return
	}
	if m.owner() == nil {
		if last == nil && why.Event == nil {
			return
		}
		m.own(&owner{})
	}
	o := m.owner()
	switch {
	case last != nil && !last.Stale():
		o.newest = last
	case why.Event != nil && (o.body == nil || o.body.Older(why.Event.Body.Identity)):
		o.newest = why.Event.Body
	case o.body != nil && o.hollow:
		if o.newest = p.readOwner(ctx, o); o.newest == nil {
			return
		}
	case o.body != nil:
		o.newest = o.body.Body()
	default:
		return
	}
	found := p.pauseOf(o.newest)
	p.notePause(m, o.newest, found)
	p.showPause(ctx, m, found)
	if o.body != nil && !o.hollow && (!o.body.Is(o.newest.Identity) || o.body.Stale()) {
		p.keepEssence(o, o.body.Body())
	}
	elsewhere := p.HandedOver != nil && p.HandedOver(o.newest)
	if o.newest.Deleting || elsewhere {
		for _, c := range o.calls {
			c.held, c.dirty = true, c.dirty || elsewhere // the other operator may change the children
		}
	} else {
		p.recovering(o.newest, func() { p.callReconcilers(ctx, m, o.newest, why.Wake) })
	}
	o.pack(&p.Reconcile.packer, p.fixEssence)
	p.setReconcileAlarm(m, found)
}

// setReconcileAlarm schedules the next turn for change handlers or reconcile handlers,
// whichever comes first. Reconcile handlers of a paused object wait for the end of the pause.
func (p *Processor) setReconcileAlarm(m *Memory, found *pause.Pause) {
	var at time.Time
	if m.busy != nil {
		at = m.busy.alarm
	}
	for _, c := range m.owner().calls {
		if found == nil && !c.held && !c.due.IsZero() && (at.IsZero() || c.due.Before(at)) {
			at = c.due
		}
	}
	if found != nil && !found.Until.IsZero() && (at.IsZero() || found.Until.Before(at)) {
		at = found.Until
	}
	if !at.IsZero() {
		p.Alarm(m.owner().body.Key(), at)
	}
}

// callReconcilers calls the handlers that match the object and are due.
func (p *Processor) callReconcilers(ctx context.Context, m *Memory, body *object.Body, wake *Wake) {
	first := body
	essence := func() string { return p.essenceID(m, first) }
	defer func() { p.keepEssence(m.owner(), first) }()
	for _, h := range p.Reconcile.Handlers {
		state := m.owner().call(h.ID)
		if state == nil {
			state = &reconciled{id: h.ID}
			m.owner().calls = append(m.owner().calls, state)
		}
		switch {
		case wake.concerns(h):
			state.dirty = true
		case wake.concernsFar(h):
			state.wakeFar(time.Now())
		}
		p.checkInventory(ctx, m, h, state, body)
		if state.held = !p.Reconcile.Listed(h) || p.stopping() || m.facts.has(isPaused); state.held {
			continue // the end of the list or of the pause starts another turn
		}
		urgent := wake.urgent(h.ID) || wake != nil && wake.Listed && state.retries > 0
		if !state.isDue(urgent, time.Now()) && !state.isOutdated(essence) {
			continue
		}
		if state.held = !p.matches(m, h, body); state.held {
			continue // the object must change first
		}
		after := p.callReconciler(ctx, m, h, state, essence, body)
		if after == nil || after.Deleting {
			return
		}
		body = after
	}
}

// matches reports whether the object meets the criteria of a reconcile handler.
func (p *Processor) matches(m *Memory, h *handler.Handler, body *object.Body) bool {
	if len(h.When) == 0 {
		return h.MatchesObject(&handler.Request{Body: body}) // only functions need more
	}
	return h.MatchesObject(p.plainRequest(m, body))
}

// essenceID returns the text that identifies the essence of the object. It is computed once
// per version: most times, the change handlers have computed the essence in the same turn.
func (p *Processor) essenceID(m *Memory, body *object.Body) string {
	if known := m.rare.seen; known.id != "" && known.version == body.ResourceVersion && !body.Stale() {
		return known.id
	}
	return p.noteEssence(m, body, p.essence(body))
}

// noteEssence notes which essence a version of the object has, for the reconcile handlers.
func (p *Processor) noteEssence(m *Memory, body *object.Body, essence map[string]any) (id string) {
	id = progress.BaseID(essence)
	if body.Stale() {
		return id
	}
	if m.rare == nil {
		m.rare = &rare{}
	}
	m.rare.seen = seenEssence{id: id, version: body.ResourceVersion}
	return id
}

// seenEssence identifies the essence of one version of an object.
type seenEssence struct{ id, version string }

// keepEssence computes the essence of the last calls of handlers before the newest state
// replaces the former one, unless both have the same. Most objects never need it: at a
// restart, all objects are called once.
func (p *Processor) keepEssence(o *owner, former *object.Body) {
	if former == o.newest {
		return
	}
	id := ""
	for _, c := range o.calls {
		if !c.called || c.essence != "" {
			continue
		}
		if id == "" {
			if len(p.Fields) == 0 && !former.Stale() && !o.newest.Stale() && essence.Same(former, o.newest) {
				return
			}
			id = progress.BaseID(p.essence(former))
		}
		c.essence = id
	}
}

// isDue reports whether the handler must be called now, even if the object is unchanged.
func (s *reconciled) isDue(urgent bool, now time.Time) bool {
	return !s.called || s.dirty || urgent && !s.due.IsZero() || !s.due.IsZero() && !now.Before(s.due)
}

// isOutdated reports whether the object has changed since the last call. essence identifies
// its present essence.
func (s *reconciled) isOutdated(essence func() string) bool {
	return s.essence != "" && s.essence != essence()
}

// checkInventory makes the handler due if another client has changed the stored inventory:
// the call restores it. If that happens again and again, the calls are delayed.
func (p *Processor) checkInventory(ctx context.Context, m *Memory, h *handler.Handler, state *reconciled, body *object.Body) {
	if !state.called || state.checked == body.ResourceVersion {
		return
	}
	state.checked = body.ResourceVersion
	records, err := p.Config.Progress.Load(ctx, stored{body}, []string{inventoryID(h.ID)})
	if _, malformed := errors.AsType[*storage.MalformedError](err); err != nil && !malformed {
		return // the next call loads it anyway
	}
	if text, _ := inventoryOf(records[inventoryID(h.ID)], body.UID); fingerprintOf(text) == state.saved {
		return
	}
	now := time.Now()
	at := now.Add(m.owner().fights.Repair(children.Key{Kind: "inventory", Name: h.ID}, now))
	if state.due.IsZero() || at.Before(state.due) {
		state.due = at
	}
}

// concerns reports whether a child of the handler has changed, or an object that it refers
// to. w may be nil.
func (w *Wake) concerns(h *handler.Handler) bool {
	return w != nil && (slices.Contains(w.Watched, h.ID) || owns(h, w.Owned))
}

// concernsFar reports whether a child of the handler in another namespace has changed, or an
// object that looks like one. w may be nil.
func (w *Wake) concernsFar(h *handler.Handler) bool { return w != nil && owns(h, w.Far) }

// owns reports whether the handler may have children of one of the kinds.
func owns(h *handler.Handler, kinds []kind.Info) bool {
	return slices.ContainsFunc(kinds, func(info kind.Info) bool {
		owned, _ := h.Reconcile.Owns(info)
		return owned
	})
}

// farBurst is the number of calls that changes of children in other namespaces cause at once,
// and farPause the time between further ones.
const (
	farBurst = 30
	farPause = time.Second
)

// wakeFar makes the handler due because a child in another namespace has changed. Clients of
// that namespace can make any object look like a child, and change it again and again. So
// after many such changes, the calls are delayed.
func (s *reconciled) wakeFar(now time.Time) {
	if s.far == nil {
		s.far = &farCalls{}
	}
	if s.far.used = max(0, s.far.used-now.Sub(s.far.at)); s.far.used < farBurst*farPause {
		s.far.used, s.far.at, s.dirty = s.far.used+farPause, now, true
		return
	}
	s.far.at = now
	if at := now.Add(farPause); s.due.IsZero() || at.Before(s.due) {
		s.due, s.early = at, !s.due.IsZero()
	}
}

// callReconciler calls one handler, brings the children to their desired state, and saves
// the outcome. It returns the newest state of the object; nil means that it is gone or
// could not be written.
func (p *Processor) callReconciler(ctx context.Context, m *Memory, h *handler.Handler, state *reconciled, essence func() string, body *object.Body) *object.Body {
	r := &reconciling{Processor: p, memory: m, handler: h, state: state, essence: essence, body: body, early: h.Limits.Retries.Set && state.retries > 0 && (state.early || time.Now().Before(state.due))}
	state.early = false
	if err := r.load(ctx); err != nil {
		p.retryReconcile(ctx, state, body, err)
		return nil
	}
	request := p.daemonRequest(m, body)
	request.Handler, request.Retry, request.Started = h, state.retries, state.started
	request.Children = &handler.Children{Find: r.finding(ctx), Refer: r.refer, Operator: p.Reconcile.Runner.Name, Listed: r.listed}
	if r.room = p.roomFor(ctx, body); r.room != nil {
		defer r.room.leave()
		request.Children.Reserve, request.Hold = r.room.reserve, r.room.hold
	}
	var outcome execute.Outcome
	p.aside(body, func() { outcome = r.attempt(ctx, request) })
	if outcome.Void {
		state.dirty = true // the operator stops, or is no longer the leader
		return body
	}
	state.called, state.essence = true, ""
	state.dirty = r.result.Changed
	r.schedule(outcome, request.Children)
	after, err := r.save(ctx, outcome, request)
	if err != nil {
		p.retryReconcile(ctx, state, body, err)
		return nil
	}
	state.saved, state.checked = fingerprintOf(r.stored), after.ResourceVersion
	if after.ResourceVersion == body.ResourceVersion && r.releases(after) {
		// No event of an own write will show that the finalizer is no longer needed.
		p.schedule(ctx, m, after, handler.Some(time.Duration(0)), nil)
	}
	return after
}

// releases reports whether the object has the finalizer, but no child that needs it. The
// store may have shown a deleted child until now, if an event from before the deletion came
// after the response.
func (r *reconciling) releases(body *object.Body) bool {
	if r.result.Inventory == nil || !slices.Contains(body.Finalizers(), r.Config.Finalizer) {
		return false
	}
	entries := slices.Concat(r.result.Inventory.Entries, r.others)
	return !children.NeedsFinalizer(append(entries, r.Reconcile.Runner.Unlisted(r.owner(), entries)...))
}

// retryReconcile schedules another call after an error of the framework.
func (p *Processor) retryReconcile(ctx context.Context, state *reconciled, body *object.Body, err error) {
	if errors.Is(err, apply.ErrGone) {
		state.due, state.dirty = time.Time{}, false
		return
	}
	state.retries++
	pause := p.Config.Jitter.Shorten(defaultBackoff.After(state.retries), backoffJitter)
	state.due, state.dirty = time.Now().Add(pause), false
	p.logThrottling(ctx, body, pause, err)
}

// attempt calls the function and applies the children that it declared.
func (r *reconciling) attempt(ctx context.Context, request *handler.Request) execute.Outcome {
	limits := r.handler.Limits
	if !limits.Backoff.Set {
		limits.Backoff = handler.Some(r.Config.Jitter.Shorten(defaultBackoff.After(r.state.retries+1), backoffJitter))
	}
	return execute.Attempt{
		Title: "Handler", ID: r.handler.ID, Limits: limits, Retries: r.state.retries, Started: r.state.started, Early: r.early,
		DefaultBackoff: r.Config.DefaultBackoff, DefaultMode: handler.Retry, Log: tracing.Log(ctx, request.Log), Own: &request.Log, Observe: r.observing(request.Body), Enter: r.Entrance.For(r.handler, nil),
		Quiet: func(any) bool { return r.result.Written == 0 },
		Call: func(ctx context.Context) (any, error) {
			if err := r.handler.Call(ctx, request); err != nil {
				waits, ok := err.(*handler.TemporaryError)
				if !ok || !waits.Wait {
					return nil, err
				}
				if failed := r.applyChildren(ctx, request, false); failed != nil {
					return nil, &handler.TemporaryError{Err: errors.Join(waits.Err, failed), Delay: waits.Delay}
				}
				return nil, err
			}
			if err := r.applyChildren(ctx, request, true); err != nil {
				return nil, err
			}
			return execute.ToJSON(request.Result)
		},
	}.Make(ctx)
}

// applyChildren brings the children to their desired state. Problems with single children
// are its error. It takes an active slot: the number of objects whose children are being
// written at the same time is limited, and so is the memory for their requests.
func (r *reconciling) applyChildren(ctx context.Context, request *handler.Request, prune bool) (err error) {
	if err := request.Children.Mistake(); err != nil {
		return &handler.PermanentError{Err: err}
	}
	if r.room != nil {
		r.room.hurried = true
	}
	var result reconcile.Result
	r.inside(r.body, func() {
		ctx := kube.WithPauses(ctx, func(pause func()) { r.aside(r.body, pause) })
		result, err = r.Reconcile.Runner.Run(ctx, reconcile.Task{
			Owner: r.owner(), Inventory: r.inventory, Others: r.others, Alone: len(r.Reconcile.Handlers) == 1, Retry: r.state.retries > 0,
			Wanted: request.Children.Wanted, Prune: prune, Fights: &r.memory.owner().fights, Log: request.Log, Guard: r.guard,
			Turn: r.childWrite,
		})
	})
	if err != nil {
		return fmt.Errorf("prepare the object for its children: %w", err)
	}
	r.result = &result
	if result.Fight != "" {
		request.Log.Warn(result.Fight, "handler", r.handler.ID)
		request.Post("Warning", "Fight", result.Fight)
	}
	return result.Err()
}

// schedule sets the time of the next call.
func (r *reconciling) schedule(outcome execute.Outcome, c *handler.Children) {
	s, now := r.state, time.Now()
	s.due = time.Time{}
	soonest := func(d time.Duration) {
		if at := now.Add(d); s.due.IsZero() || at.Before(s.due) {
			s.due = at
		}
	}
	switch {
	case outcome.Final && outcome.Err == nil:
		s.retries, s.started = 0, time.Time{}
		if c.Again.Set {
			soonest(c.Again.Is)
		}
	case outcome.Final: // stalled until the object changes
		s.retries, s.started = 0, time.Time{}
		return
	default:
		if !r.early {
			s.retries++
		}
		soonest(outcome.Delay.Or(0))
	}
	if every := r.handler.Reconcile.Every; every > 0 {
		soonest(every)
	}
	if r.result.Changed {
		soonest(0)
	}
	if r.result.Again > 0 {
		soonest(r.result.Again)
	}
}

// owner returns the object as the owner of children.
func (r *reconciling) owner() reconcile.Owner {
	return reconcile.Owner{Info: r.Resource, Identity: r.body.Identity}
}

// finding returns a function that returns the content of a live child, which is unpacked
// only if the handler looks at it, and whether the child is ready by the built-in rules.
func (r *reconciling) finding(ctx context.Context) func(children.Key) (handler.Content, readiness.Verdict) {
	return func(k children.Key) (handler.Content, readiness.Verdict) {
		c := r.Reconcile.Runner.Store.Find(k)
		if c == nil || !c.BelongsTo(r.body.UID, r.body.Namespace) {
			return nil, readiness.Verdict{}
		}
		content := r.Reconcile.Runner.Content(ctx, r.body.Namespace, c)
		if r.room == nil || c.HasContent() {
			return content, c.Readiness
		}
		return func() (*object.Body, error) { // it is large, and read now
			if err := r.room.reserve(c.Size()); err != nil {
				return nil, fmt.Errorf("read %s: %w", k, err)
			}
			return content()
		}, c.Readiness
	}
}

// refer replaces the references of the handler. An empty namespace means that of the
// object, or none for a cluster-scoped kind.
func (r *reconciling) refer(refs []handler.Reference) {
	var all []childwatch.Reference
	for _, ref := range refs {
		one := childwatch.Reference{Of: ref.Of, Namespace: ref.Namespace, Name: ref.Name}
		all = append(all, one)
		if one.Namespace == "" && r.body.Namespace != "" {
			one.Namespace = r.body.Namespace
			all = append(all, one)
		}
	}
	err := r.Reconcile.References.Set(r.body.UID, r.body.Namespace, r.handler.ID, all)
	if err == nil {
		return
	}
	if ok, suppressed := r.limiter.Allow("references"); ok {
		r.Logger(r.body).Warn("Changes of the objects that the object refers to do not call its handler.", "handler", r.handler.ID, "error", err, "suppressed", suppressed)
	}
}

// guard adds the finalizer and saves the inventory before children are created that must
// not outlive the object.
func (r *reconciling) guard(ctx context.Context, planned *children.Inventory) error {
	var notes patch.Patch
	finalizer := apply.Finalizer{Name: r.Config.Finalizer, Former: r.Config.Former}
	finalizer.Add = !slices.Contains(r.body.Finalizers(), finalizer.Name)
	text, err := planned.Encode()
	if err != nil {
		return err
	}
	outside := slices.ContainsFunc(planned.Entries, func(e children.Entry) bool { return e.Outside && e.UID == "" })
	if !finalizer.Add && (!outside || text == r.stored) {
		return nil
	}
	if outside {
		if err := r.saveRecords(ctx, &notes, text, nil); err != nil {
			return err
		}
		r.stored = text
	}
	after, err := r.send(ctx, &patch.Patch{}, &notes, finalizer)
	if err != nil {
		return err
	}
	if after.Deleting {
		return errors.New("the object is being deleted")
	}
	r.body = after
	r.memory.facts.first(guarded)
	return nil
}
