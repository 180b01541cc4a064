package process

import (
	"bytes"
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

// The marks of an operator on an object are its finalizer and its annotations: the
// base, the records and the note. Only this process should change them. If they
// change without a write of this process, another writer is at work: most likely a
// second operator with the same names.

// witness is what this process knows of the marks on one object. It exists only for
// objects that this process has looked at closely since they last settled.
type witness struct {
	marks   uint64 // of the newest known state; 0 if they are not known
	version string // of that state
	pauses  uint32 // the number of pauses so far: others may write in a pause

	// The marks and the version before the last write, and the value of the counter
	// of [Event.Mark] when it was sent; 0 if there was none. An event that arrived
	// before that cannot be about the write.
	before uint64
	since  string
	sent   uint64
}

// learn notes the marks of a state that is about to be acted on. They stay unknown
// while a write is unsent or failed: it may have been made.
func (p *Processor) noteMarks(m *Memory, body *object.Body) {
	if m.unfinished() || body.Stale() {
		m.witness = nil
		return
	}
	if w := m.witness; w != nil && w.version == body.ResourceVersion && w.marks != 0 {
		return
	}
	w := m.witness
	if w == nil {
		w = &witness{}
		m.witness = w
	}
	w.marks, w.version, w.pauses = p.marks(body), body.ResourceVersion, p.pauses()
}

// sends notes that a write is about to be sent.
func (p *Processor) noteSending(m *Memory) {
	w := m.witness
	if w == nil || p.Mark == nil {
		return
	}
	w.before, w.since, w.sent = w.marks, w.version, p.Mark()
}

// sent notes the response to a write. After an error it is not known what was
// written.
func (p *Processor) noteResponse(m *Memory, after *object.Body, err error) {
	w := m.witness
	switch {
	case w == nil:
	case err != nil:
		m.witness = nil
	case after.Stale():
		w.marks, w.version = 0, after.ResourceVersion
	default:
		w.marks, w.version = p.marks(after), after.ResourceVersion
	}
}

// compare looks for changes of the marks that this process did not make. After a
// pause or a restore, it knows nothing.
func (p *Processor) detectForeignWrite(ctx context.Context, m *Memory, e *Event) {
	w := m.witness
	switch {
	case w == nil || e.Gone():
		return
	case w.pauses != p.pauses() || e.Authoritative || m.rewound(e) || !numeric(e.Body.ResourceVersion, w.version):
		m.witness = nil
		return
	}
	foreign := false
	switch v := e.Body.ResourceVersion; {
	case newer(v, w.version):
		foreign = w.marks != 0 && p.marks(e.Body) != w.marks
		m.witness = nil
	case e.List == 0 && !e.Listed() && e.Mark < w.sent && numeric(v, w.since) && newer(v, w.since):
		// It arrived before the last write was sent, and is newer than what was known
		// then. The write may have changed nothing, because another one had made the
		// same change.
		foreign = w.before != 0 && p.marks(e.Body) != w.before
	}
	if foreign {
		p.reportForeignWrite(ctx, e.Body)
	}
}

// suspect counts a change of the marks by another writer, and says so if it goes on.
func (p *Processor) reportForeignWrite(ctx context.Context, body *object.Body) {
	if p.Foreign != nil {
		p.Foreign()
	}
	p.Logger(body).Debug("The operator's state on the object has changed without a write of this process.")
	if p.Notices == nil || !p.Notices.suspect(time.Now()) {
		return
	}
	manager := "unknown"
	p.aside(func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if found := p.managers(ctx, body); len(found) > 0 {
			manager = strings.Join(found, ", ")
		}
	})
	p.Logger(body).Warn("Another writer changes the state of this operator on objects. If it is an operator with the same names, "+
		"give one of them a finalizer and storages with a prefix of its own, or let only one of them run.", "manager", manager)
	p.Notices.name(fmt.Sprintf("Another writer changes the state of this operator on objects, such as %s %s; the field manager is %s.",
		p.Resource.String(), body.Identity.String(), manager))
}

// marks returns a hash of the operator's marks on a state of the object; 0 if they
// cannot be told from those of others. Annotations that pause an object are not
// marks, and those of ReplicaSets are copies that Kubernetes makes.
func (p *Processor) marks(body *object.Body) uint64 {
	if p.Resource.Kind == "ReplicaSet" {
		return 0
	}
	prefixes := p.prefixes()
	sum := uint64(0) // of the hashes of all marks, in any order
	for key, value := range body.Annotations() {
		if isMark(key, prefixes) {
			text, _ := value.(string)
			sum += maphash.Comparable(p.seed, [2]string{key, text})
		}
	}
	if slices.Contains(body.Finalizers(), p.Config.Finalizer) {
		sum += maphash.String(p.seed, p.Config.Finalizer)
	}
	return max(1, sum)
}

func isMark(annotation string, prefixes []string) bool {
	prefix, name, ok := strings.Cut(annotation, "/")
	return ok && name != "pause" && slices.Contains(prefixes, prefix)
}

// prefixes are those of the annotations that the storages keep their state in.
func (p *Processor) prefixes() []string {
	p.prefixesOnce.Do(func() {
		p.seed = maphash.MakeSeed()
		for _, one := range []any{p.Config.Base, p.Config.Progress} {
			if tracer, ok := one.(storage.Tracer); ok {
				traces, _ := tracer.Traces()
				p.prefixList = append(p.prefixList, traces.Prefixes...)
			}
		}
	})
	return p.prefixList
}

// managers returns the field managers that own marks on the object, the last writer
// first.
func (p *Processor) managers(ctx context.Context, body *object.Body) []string {
	if p.Managers == nil {
		return nil
	}
	entries, err := p.Managers(ctx, kube.Target{Info: p.Resource, Namespace: body.Namespace, Name: body.Name})
	if err != nil {
		p.Logger(body).Debug("The field managers of the object cannot be read.", "error", err)
		return nil
	}
	return owners(entries, p.prefixes(), p.Config.Finalizer)
}

// owners returns the managers of annotations with one of the prefixes, or of the
// finalizer, the last writer first.
func owners(entries []metav1.ManagedFieldsEntry, prefixes []string, finalizer string) []string {
	owns := func(e metav1.ManagedFieldsEntry) bool {
		if e.FieldsV1 == nil {
			return false
		}
		if bytes.Contains(e.FieldsV1.Raw, []byte(`"v:\"`+finalizer+`\""`)) {
			return true
		}
		return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.Contains(e.FieldsV1.Raw, []byte(`"f:`+p+`/`)) })
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
		if owns(e) && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}
