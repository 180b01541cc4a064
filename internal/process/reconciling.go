package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/storage"
)

// inventoryID returns the id under which the inventory of a reconcile handler is stored,
// next to the records of handlers. Kopf has no handler with this id.
func inventoryID(handler string) string { return "gopf.children." + handler }

// reconciling is one call of a reconcile handler.
type reconciling struct {
	*Processor
	memory    *Memory
	handler   *handler.Handler
	state     *reconciled
	essence   func() string // identifies the essence of the object
	body      *object.Body  // the newest known state of the object
	inventory *children.Inventory
	others    []children.Entry // of the other reconcile handlers
	read      string           // the inventory as it was loaded
	stored    string           // the inventory as it is stored
	recorded  bool             // a record of the handler is stored
	result    *reconcile.Result
	room      *callRoom // nil means no limit
	early     bool      // the call is before the end of a delay, and attempts are limited: it does not count as one
}

// load loads the inventories and the record of the handler.
func (r *reconciling) load(ctx context.Context) error {
	r.result = &reconcile.Result{}
	records, err := r.loadReconciled(ctx, r.memory, r.body)
	if _, malformed := errors.AsType[*storage.MalformedError](err); err != nil && !malformed {
		return fmt.Errorf("load the inventory of children: %w", err)
	}
	record, recorded := records[r.handler.ID]
	if r.recorded = recorded; recorded && !r.state.called && !record.Finished() {
		r.state.retries, r.state.started = record.Retries, record.Started
	}
	if r.state.started.IsZero() {
		r.state.started = time.Now()
	}
	for _, h := range r.Reconcile.Handlers {
		text, found := inventoryOf(records[inventoryID(h.ID)], r.body.UID)
		if h != r.handler {
			r.others = append(r.others, found.Entries...)
			continue
		}
		r.inventory, r.read, r.stored = found, text, text
	}
	return nil
}

// listed returns the children in the inventories of the object.
func (r *reconciling) listed() []children.Key {
	keys := make([]children.Key, 0, len(r.inventory.Entries)+len(r.others))
	for _, entries := range [][]children.Entry{r.inventory.Entries, r.others} {
		for _, e := range entries {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// loadedRecords are the records and inventories of all reconcile handlers. A turn needs
// them twice: for the finalizer, and for the calls.
type loadedRecords struct {
	of      *object.Body // the state that they belong to; nil means that none are loaded
	records map[string]storage.Record
}

// loadReconciled loads the records and inventories of all reconcile handlers, once per
// turn and state of the object. The error may be a [*storage.MalformedError].
func (p *Processor) loadReconciled(ctx context.Context, m *Memory, body *object.Body) (map[string]storage.Record, error) {
	if m.rare != nil && m.rare.loaded.of == body {
		return m.rare.loaded.records, nil
	}
	ids := make([]string, 0, 2*len(p.Reconcile.Handlers))
	for _, h := range p.Reconcile.Handlers {
		ids = append(ids, h.ID, inventoryID(h.ID))
	}
	records, err := p.Config.Progress.Load(ctx, stored{body}, ids)
	if err == nil {
		if m.rare == nil {
			m.rare = &rare{}
		}
		m.rare.loaded = loadedRecords{body, records}
	}
	return records, err
}

// dropLoaded drops the loaded records: at the end of a turn, and when records are saved.
func (m *Memory) dropLoaded() {
	if m.rare != nil {
		m.rare.loaded = loadedRecords{}
	}
}

// inventoryOf returns the inventory in a record. A malformed one, or that of another
// object, counts as empty.
func inventoryOf(record storage.Record, uid string) (text string, found *children.Inventory) {
	if record.Message != nil {
		text = *record.Message
	}
	found, err := children.Decode(text, uid)
	if err != nil {
		found = &children.Inventory{Owner: uid}
	}
	return text, found
}

// save writes the outcome of a call in one change: the patch of the handler, the
// conditions, the record and the inventory.
func (r *reconciling) save(ctx context.Context, outcome execute.Outcome, request *handler.Request) (*object.Body, error) {
	ctx, cancel := r.lasting(ctx)
	defer cancel()
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	asked := &patch.Patch{}
	asked.Absorb(request.Patch)
	if outcome.Err == nil && outcome.Result != nil {
		execute.Deliver(asked, r.handler.ID, outcome.Result)
	}
	r.judge(ctx, outcome, asked)
	var notes patch.Patch
	if err := r.saveRecords(ctx, &notes, text, r.record(outcome)); err != nil {
		return nil, err
	}
	after, err := r.send(ctx, asked, &notes, apply.Finalizer{})
	if refused(err) && !asked.Empty() {
		// The inventory must be saved even if the API server refuses the handler's patch.
		tracing.Log(ctx, r.Logger(r.body)).Error("The API server refused the changes that a reconcile handler requested.", "handler", r.handler.ID, "error", err)
		r.state.due = time.Now().Add(defaultBackoff.After(r.state.retries + 1))
		r.state.retries++
		after, err = r.send(ctx, &patch.Patch{}, &notes, apply.Finalizer{})
	}
	if err == nil {
		r.stored = text
	}
	return after, err
}

// text returns the inventory after a call as it must be stored.
func (r *reconciling) text() (string, error) {
	now := r.result.Inventory
	if now == nil || len(now.Entries) > 0 && slices.Equal(now.Entries, r.inventory.Entries) && r.stored == r.read {
		return r.stored, nil
	}
	return now.Encode()
}

// record returns the record of the handler after a call. nil means that none is needed.
func (r *reconciling) record(outcome execute.Outcome) *storage.Record {
	if outcome.Err == nil {
		return nil
	}
	message := outcome.Message
	record := &storage.Record{Started: r.state.started, Purpose: reconciledFor(r.essence()), Retries: r.state.retries, Failure: outcome.Final, Message: &message}
	if outcome.Final {
		record.Started, record.Stopped, record.Retries = time.Now(), time.Now(), 0
	} else {
		record.Delayed, record.Delay = r.state.due, max(0, time.Until(r.state.due))
	}
	return record
}

// saveRecords puts the inventory and the record of the handler into the notes. record may
// be nil.
func (r *reconciling) saveRecords(ctx context.Context, notes *patch.Patch, text string, record *storage.Record) error {
	changed := map[string]storage.Record{}
	var purge []string
	switch id := inventoryID(r.handler.ID); text {
	case r.stored:
	case "":
		purge = append(purge, id)
	default:
		changed[id] = storage.Record{Started: time.Now(), Purpose: reconcilePurpose, Message: &text}
	}
	switch {
	case record != nil:
		changed[r.handler.ID] = *record
	case r.recorded:
		purge = append(purge, r.handler.ID)
	}
	if len(changed)+len(purge) == 0 {
		return nil
	}
	r.memory.dropLoaded()
	if err := r.Config.Progress.Save(ctx, stored{r.body}, notes, changed, purge); err != nil {
		return fmt.Errorf("save the inventory of children: %w", err)
	}
	return nil
}

// send writes a change of the object and updates its memory.
func (r *reconciling) send(ctx context.Context, asked, notes *patch.Patch, f apply.Finalizer) (*object.Body, error) {
	m := r.memory
	notes, f, err := r.moveWith(ctx, m, r.body, asked, notes, f)
	if err != nil {
		return nil, err
	}
	if asked.Empty() && notes.Empty() && !f.Add && !f.Remove {
		return r.body, nil
	}
	applier := apply.Applier{
		API: r.API, Resource: r.Resource, Log: tracing.Log(ctx, r.Logger(r.body)), Jitter: r.Config.Jitter, Fresh: true,
		Conflicted: func(before, now *object.Body) { r.noteConflict(ctx, m, before, now) },
	}
	r.noteTraces(m, r.body)
	r.noteSending(m)
	after, err := r.apply(ctx, applier, r.body, asked, notes, f)
	r.wrote(m)
	r.noteResponse(m, after, err)
	if err != nil {
		return after, err
	}
	if after.ResourceVersion != r.body.ResourceVersion {
		m.daemons.Load().Outdate()
		// Change handlers must see the new state when its event arrives.
		m.setActed(versionOf(after.ResourceVersion))
		m.unchecked, m.responded = true, false
		if m.busy != nil && m.busy.body != nil {
			m.busy.body = after.Undecoded()
		}
	}
	r.body = after
	m.owner().newest = after
	return after, nil
}

// expectTeardown determines whether the deletion of the object must wait for children.
func (v *view) expectTeardown(ctx context.Context) error {
	if v.Reconcile == nil || v.copied {
		return nil
	}
	entries, err := v.ownedEntries(ctx)
	if err != nil {
		return err
	}
	o := v.memory.owner()
	if v.body.Deleting && slices.Contains(v.body.Finalizers(), metav1.FinalizerOrphanDependents) {
		// The client that deleted the object wants to keep the children. The garbage collector
		// removes this finalizer later; the children must stay nonetheless.
		if o == nil {
			o = &owner{body: v.Reconcile.packer.PackQuickly(v.body)}
			v.memory.own(o)
		}
		o.gone = true
	}
	v.ownsInOrder = children.NeedsFinalizer(entries)
	v.tearing = v.ownsInOrder && v.body.Deleting && v.blocked && !(o != nil && o.gone)
	if v.tearing {
		v.staying = sooner(v.staying, handler.Some(teardownPause(o)))
	}
	return nil
}

const (
	// teardownPolling is the time between two looks at children that are being deleted. Their
	// events start a turn earlier.
	teardownPolling = 10 * time.Second
	// teardownDoublings limits how often failures double this time.
	teardownDoublings = 5
)

// teardownPause returns the time until the next look at children that are being deleted. It
// grows with each failure: a forged inventory can have entries that fail forever. o may be
// nil.
func teardownPause(o *owner) time.Duration {
	if o == nil || o.teardown == nil {
		return teardownPolling
	}
	return teardownPolling << min(o.teardown.failures, teardownDoublings)
}

// ownedEntries returns the inventories of the reconcile handlers that match the object, and
// the known children that are in none of them.
func (v *view) ownedEntries(ctx context.Context) (all []children.Entry, err error) {
	records, err := v.loadReconciled(ctx, v.memory, v.body)
	if err = v.ignoreMalformed(err); err != nil {
		return nil, fmt.Errorf("load the inventory of children: %w", err)
	}
	for _, h := range v.Reconcile.Handlers {
		if !v.matches(v.memory, h, v.body) {
			continue
		}
		_, found := inventoryOf(records[inventoryID(h.ID)], v.body.UID)
		all = append(all, found.Entries...)
	}
	return append(all, v.Reconcile.Runner.Unlisted(reconcile.Owner{Info: v.Resource, Identity: v.body.Identity}, all)...), nil
}

// teardown deletes the next wave of children. When all are gone, the object is due at
// once, and its finalizer is removed.
func (v *view) teardown(ctx context.Context, c *change) {
	m := v.memory
	if m.owner() == nil {
		m.own(&owner{body: v.Reconcile.packer.PackQuickly(v.body)})
	}
	if slices.ContainsFunc(v.Reconcile.Handlers, func(h *handler.Handler) bool { return !v.Reconcile.Listed(h) }) {
		return // the end of the list starts another turn
	}
	o := m.owner()
	if o.teardown == nil {
		o.teardown = &teardown{}
	}
	state := o.teardown
	entries, err := v.ownedEntries(ctx)
	if err == nil {
		if i := slices.IndexFunc(entries, func(e children.Entry) bool { return e.Key == state.failed }); i > 0 {
			entries[0], entries[i] = entries[i], entries[0] // if it still fails, there are no other requests
		}
		ctx := kube.WithPauses(ctx, func(pause func()) { v.aside(v.body, pause) })
		done, blocking, failure := v.Reconcile.Runner.Teardown(ctx, reconcile.Owner{Info: v.Resource, Identity: v.body.Identity}, entries)
		if state.failed = (children.Key{}); failure != nil && blocking != nil {
			state.failed, blocking = blocking.Key.Clone(), nil // of the text of the inventory
		}
		if err = failure; done {
			o.gone, c.acted = true, true
			c.due = handler.Some(time.Duration(0))
			return
		}
		if blocking != nil && state.blocking != blocking.Key.String() {
			state.blocking = blocking.Key.String()
			v.log.Info("The deletion waits for a child.", "child", state.blocking)
			v.explainTeardown(ctx, c)
		}
	}
	if err != nil {
		state.failures++
		v.log.Error("Failed to delete the children of the object; retrying.", "error", err)
		return
	}
	state.failures = 0
}

// childWrite is [reconcile.Task.Turn].
func (r *reconciling) childWrite(ctx context.Context, size int) (leave func(), err error) {
	if !r.Heavy.limits(size) {
		return func() {}, nil
	}
	r.aside(r.body, func() { leave, err = r.Heavy.enter(ctx, r.body.Namespace, size) })
	return leave, err
}
