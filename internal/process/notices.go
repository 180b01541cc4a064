package process

import (
	"log/slog"
	"sync"
	"time"
)

// Notices writes log lines that an operator needs only once, for the first object
// concerned. It is safe for concurrent use.
type Notices struct {
	plainSecrets, strangers, leftovers, annotated sync.Once

	mu      sync.Mutex
	first   time.Time // when the other writer was first seen
	last    time.Time // when it was last seen
	warned  bool
	warning string // see Warning
}

const (
	// suspicionDelay is the time that another writer must be active before it is
	// reported. When one process takes over from another, both write for a moment.
	suspicionDelay = 2 * time.Minute
	// suspicionMemory is the time without a foreign write after which the other writer
	// is forgotten.
	suspicionMemory = time.Hour
)

// suspect notes a change that another writer made. It reports whether the warning must
// be logged now. That happens once per process.
func (n *Notices) suspect(now time.Time) (warn bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.first.IsZero() || now.Sub(n.last) > suspicionMemory {
		n.first = now
	}
	n.last = now
	if n.warned || now.Sub(n.first) < suspicionDelay {
		return false
	}
	n.warned = true
	return true
}

// name sets the warning about the other writer.
func (n *Notices) name(warning string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.warning = warning
}

// Warning returns a warning about another writer. It is empty if none was seen in the
// last hour.
func (n *Notices) Warning() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.last) > suspicionMemory {
		return ""
	}
	return n.warning
}

// replacesPlain logs that digests replace plain values of Secrets. n may be nil.
func (n *Notices) replacesPlain(log *slog.Logger) {
	if n == nil {
		return
	}
	n.plainSecrets.Do(func() {
		log.Info("Last-handled configurations of Secrets contain plain values, as Kopf stores them. The operator replaces them with digests.")
	})
}

// contested warns that another operator keeps state of the same objects in annotations.
// ignored reports whether that state is ignored. n may be nil.
func (n *Notices) contested(log *slog.Logger, ignored bool) {
	if n == nil {
		return
	}
	n.annotated.Do(func() {
		effect := "Its state counts, because it is newer than the one in the status."
		if ignored {
			effect = "Its state is ignored, because this operator never had state in annotations of the object."
		}
		log.Warn("Another operator keeps the state of the object in annotations, as Kopf does by default, but this one keeps it in the status. " + effect +
			" If both operators handle the same objects in turns, keep the state of both in annotations; otherwise stop the other one.")
	})
}

// removesFinalizer logs that the operator is about to remove a finalizer that this
// process did not add. That is usual after a restart, if the object has state of the
// operator. Without state, the finalizer may belong to another operator with the same
// names. n may be nil.
func (n *Notices) removesFinalizer(log *slog.Logger, finalizer string, hasState, deleting bool) {
	switch {
	case n == nil || hasState && deleting:
	case hasState:
		n.leftovers.Do(func() {
			log.Info("Removing a finalizer that an earlier process of the operator put on the object, because no handler requires it now.", "finalizer", finalizer)
		})
	default:
		n.strangers.Do(func() {
			log.Warn("Removing a finalizer that this process did not put on the object, which has no state of this operator. "+
				"If another operator uses the same finalizer, configure a different one.", "finalizer", finalizer)
		})
	}
}
