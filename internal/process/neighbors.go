package process

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
)

// The traces of an operator on an object are its finalizer and its state: the base, the
// records and the note, in annotations or in the status. Only this process should change them. If they
// change without a write of this process, there is another writer: most likely a
// second operator with the same names.

// witness has the traces that this process expects on one object. It exists only for
// objects that had a pass since they last settled.
type witness struct {
	traces  uint64 // a hash of the traces of the newest known state; 0 means not known
	version string // the version of that state
	pauses  uint32 // the number of pauses so far: other operators may write in a pause

	before uint64 // the traces before the last write
	since  string // the version before the last write
	// sent is the value of the counter of [Event.Mark] when the last write was sent;
	// 0 if there was none. An event with a lower mark cannot show the write.
	sent uint64
}

// noteTraces notes the traces of a state that is about to be acted on. They are unknown
// while a write is unsent or failed: the API server may have executed it.
func (p *Processor) noteTraces(m *Memory, body *object.Body) {
	if m.unfinished() || body.Stale() {
		m.setWitness(nil)
		return
	}
	if w := m.witnessed(); w != nil && w.version == body.ResourceVersion && w.traces != 0 {
		return
	}
	w := m.witnessed()
	if w == nil {
		w = &witness{}
		m.setWitness(w)
	}
	w.traces, w.version, w.pauses = p.traces(body), body.ResourceVersion, p.pauses()
}

// noteSending notes that a write is about to be sent.
func (p *Processor) noteSending(m *Memory) {
	w := m.witnessed()
	if w == nil || p.Mark == nil {
		return
	}
	w.before, w.since, w.sent = w.traces, w.version, p.Mark()
}

// noteConflict reports a change of the traces that caused a conflict. The event of that
// change may never be seen: the event of the write after the conflict can replace it in
// the queue.
func (p *Processor) noteConflict(ctx context.Context, m *Memory, before, now *object.Body) {
	w := m.witnessed()
	if w == nil || w.traces == 0 || w.pauses != p.pauses() || before.Stale() || !numeric(now.ResourceVersion, before.ResourceVersion) {
		return
	}
	if newer(now.ResourceVersion, before.ResourceVersion) && p.traces(now) != p.traces(before) {
		p.reportForeignWrite(ctx, now)
		w.sent = 0 // the event of the change must not be reported again
	}
}

// noteResponse notes the response to a write. After an error the traces are unknown.
func (p *Processor) noteResponse(m *Memory, after *object.Body, err error) {
	w := m.witnessed()
	switch {
	case w == nil:
	case err != nil:
		m.setWitness(nil)
	case after.Stale():
		w.traces, w.version = 0, after.ResourceVersion
	default:
		w.traces, w.version = p.traces(after), after.ResourceVersion
	}
}

// detectForeignWrite reports changes of the traces that this process did not make.
// After a pause of the operator or a restore of the cluster, the traces are unknown.
func (p *Processor) detectForeignWrite(ctx context.Context, m *Memory, e *Event) {
	w := m.witnessed()
	switch {
	case w == nil || e.Gone():
		return
	case w.pauses != p.pauses() || e.Authoritative || m.rewound(e) || !numeric(e.Body.ResourceVersion, w.version):
		m.setWitness(nil)
		return
	}
	foreign := false
	switch v := e.Body.ResourceVersion; {
	case newer(v, w.version):
		foreign = w.traces != 0 && p.traces(e.Body) != w.traces
		m.setWitness(nil)
	case e.List == 0 && !e.Listed() && e.Mark < w.sent && numeric(v, w.since) && newer(v, w.since):
		// The event arrived before the last write was sent, and is newer than the state
		// known then. The write may have changed nothing, because another writer had
		// made the same change.
		foreign = w.before != 0 && p.traces(e.Body) != w.before
	}
	if foreign {
		p.reportForeignWrite(ctx, e.Body)
	}
}

// reportForeignWrite counts a change of the traces by another writer. It warns if such
// changes continue.
func (p *Processor) reportForeignWrite(ctx context.Context, body *object.Body) {
	if p.Foreign != nil {
		p.Foreign()
	}
	p.Logger(body).Debug("The operator's state on the object has changed without a write of this process.")
	if p.Notices == nil || !p.Notices.suspect(time.Now()) {
		return
	}
	manager := "unknown"
	p.aside(body, func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if found := p.managers(ctx, body); len(found) > 0 {
			manager = strings.Join(found, ", ")
		}
	})
	p.Logger(body).Warn("Another writer changes the state of this operator on objects. If it is an operator with the same names, "+
		"give one of them its own finalizer and its own storage prefix, or run only one of them.", "manager", manager)
	p.Notices.name(fmt.Sprintf("Another writer changes the state of this operator on objects, such as %s %s; the field manager is %s.",
		p.Resource.String(), body.Identity.String(), manager))
}

// traces returns a hash of the operator's traces in a body; 0 means unknown.
// Annotations that pause an object are not traces. The traces of ReplicaSets are
// unknown, because Kubernetes copies annotations to them.
func (p *Processor) traces(body *object.Body) uint64 {
	if p.Resource.Kind == "ReplicaSet" {
		return 0
	}
	prefixes := p.prefixes()
	sum := uint64(0) // the sum of the hashes does not depend on their order
	for key, value := range body.Annotations() {
		if isTrace(key, prefixes) {
			text, _ := value.(string)
			sum += maphash.Comparable(p.seed, [2]string{key, text})
		}
	}
	for _, key := range p.tracedKeys {
		if value, ok := body.Lookup("status", key); ok {
			sum += pairHash(p.seed, maphash.String(p.seed, key), valueHash(p.seed, value))
		}
	}
	for _, f := range body.Finalizers() {
		if f == p.Config.Finalizer || slices.Contains(p.Config.Former, f) {
			sum += maphash.String(p.seed, f)
		}
	}
	return max(1, sum)
}

// valueHash returns a hash of a decoded JSON value. The order of keys does not matter.
func valueHash(seed maphash.Seed, value any) uint64 {
	const object, list, text, other = 1, 2, 3, 4 // values of different types have different hashes
	switch v := value.(type) {
	case map[string]any:
		sum := uint64(0)
		for key, member := range v {
			sum += pairHash(seed, maphash.String(seed, key), valueHash(seed, member))
		}
		return pairHash(seed, object, sum)
	case []any:
		sum := uint64(0)
		for _, item := range v {
			sum = pairHash(seed, sum, valueHash(seed, item))
		}
		return pairHash(seed, list, sum)
	case string:
		return pairHash(seed, text, maphash.String(seed, v))
	}
	return pairHash(seed, other, maphash.Comparable(seed, value)) // a number, true, false or null
}

func pairHash(seed maphash.Seed, a, b uint64) uint64 {
	return maphash.Comparable(seed, [2]uint64{a, b})
}

// isTrace reports whether an annotation belongs to the operator's storages.
func isTrace(annotation string, prefixes []string) bool {
	prefix, name, ok := strings.Cut(annotation, "/")
	return ok && name != "pause" && slices.Contains(prefixes, prefix)
}

// prefixes returns the prefixes of the annotations that the storages use.
func (p *Processor) prefixes() []string {
	p.prefixesOnce.Do(func() {
		p.seed = maphash.MakeSeed()
		for _, one := range []any{p.Config.Base, p.Config.Progress} {
			if tracer, ok := one.(storage.Tracer); ok {
				traces, _ := tracer.Traces()
				p.prefixList = append(p.prefixList, traces.Prefixes...)
			}
		}
		p.tracedKeys = writtenKeys(p.Config.Progress)
	})
	return p.prefixList
}

// writtenKeys returns the keys of the status under which the storage writes. Storages in
// annotations may also read the status, for state of old versions of Kopf.
func writtenKeys(progress storage.Progress) []string {
	if placed, ok := progress.(storage.Placed); !ok || !placed.InStatus() {
		return nil
	}
	if in, ok := progress.(interface{ State() *storage.StatusState }); ok {
		return in.State().Keys()
	}
	if tracer, ok := progress.(storage.Tracer); ok {
		traces, _ := tracer.Traces()
		return slices.Compact(slices.Sorted(slices.Values(traces.Keys)))
	}
	return nil
}

// managers returns the field managers that own traces on the object, the last writer
// first.
func (p *Processor) managers(ctx context.Context, body *object.Body) []string {
	if p.Managers == nil {
		return nil
	}
	entries, err := p.Managers(ctx, kube.Target{Info: p.Resource, Namespace: body.Namespace, Name: body.Name})
	if err != nil {
		p.Logger(body).Debug("Failed to read the field managers of the object.", "error", err)
		return nil
	}
	return owners(entries, p.prefixes(), p.tracedKeys, p.finalizers())
}

// mostOwners limits the field managers that a warning names.
const mostOwners = 8

// owners returns the managers of annotations with one of the prefixes, of one of the keys in
// the status, or of one of the finalizers, the last writer first. It returns at most [mostOwners]:
// clients may write under any number of names.
func owners(entries []metav1.ManagedFieldsEntry, prefixes, keys, finalizers []string) []string {
	owns := func(e metav1.ManagedFieldsEntry) bool {
		if e.FieldsV1 == nil {
			return false
		}
		if status := strings.Index(e.FieldsV1.GetRawString(), `"f:status":`); status >= 0 &&
			slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(e.FieldsV1.GetRawString()[status:], `"f:`+k+`":`) }) {
			return true
		}
		if slices.ContainsFunc(finalizers, func(f string) bool { return strings.Contains(e.FieldsV1.GetRawString(), `"v:\"`+f+`\""`) }) {
			return true
		}
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.Contains(e.FieldsV1.GetRawString(), `"f:`+p+`/`) })
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		switch {
		case a.Time == nil || b.Time == nil:
			return 0
		}
		return b.Time.Compare(a.Time.Time)
	})
	var names []string
	for _, e := range entries {
		if len(names) < mostOwners && owns(e) && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}
