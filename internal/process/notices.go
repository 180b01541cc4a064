package process

import (
	"log/slog"
	"sync"
)

// Notices are log lines that an operator writes once, whichever object comes first.
type Notices struct {
	plainSecrets sync.Once
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
