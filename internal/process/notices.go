package process

import (
	"log/slog"
	"sync"
	"time"
)

// Notices are log lines that an operator writes once, whichever object comes first.
// It is safe for concurrent use.
type Notices struct {
	plainSecrets, strangers, leftovers sync.Once

	mu      sync.Mutex
	first   time.Time // since when another writer has been suspected
	last    time.Time // the last time
	warned  bool
	warning string // about the other writer
}

// Another writer is reported if it has been seen for at least this long: when one
// process takes over from another, both write for a moment. It is forgotten if it is
// not seen for a while.
const (
	suspicionDelay  = 2 * time.Minute
	suspicionMemory = time.Hour
)

// suspect notes a change that another writer made. It reports whether a warning must
// be written now: once in the life of the operator.
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

// name keeps what is known of the other writer.
func (n *Notices) name(warning string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.warning = warning
}

// Warning returns a warning about another writer; "" if none was seen lately.
func (n *Notices) Warning() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.last) > suspicionMemory {
		return ""
	}
	return n.warning
}

// replacesPlain says that plain values of Secrets are replaced by digests.
func (n *Notices) replacesPlain(log *slog.Logger) {
	if n == nil {
		return
	}
	n.plainSecrets.Do(func() {
		log.Info("Last-handled configurations of Secrets have plain values, as Kopf stores them. The operator replaces them by digests.")
	})
}

// removesFinalizer says that the operator is about to remove a finalizer of its name
// that this process did not put on the object. That is usual after a restart, if the
// object has state of the operator. Without state, it may be that of another operator
// with the same names.
func (n *Notices) removesFinalizer(log *slog.Logger, finalizer string, hasState, deleting bool) {
	switch {
	case n == nil || hasState && deleting:
	case hasState:
		n.leftovers.Do(func() {
			log.Info("Removing a finalizer that an earlier process of the operator put on the object: no handler requires it now.", "finalizer", finalizer)
		})
	default:
		n.strangers.Do(func() {
			log.Warn("Removing a finalizer that this process did not put on the object, which has no state of this operator. "+
				"If another operator uses the same name, give one of them a finalizer of its own.", "finalizer", finalizer)
		})
	}
}
