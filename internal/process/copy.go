package process

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// isCopy reports whether the object brought its stored state along from another
// object. It is then handled as a new one: base, records and note count as absent.
// The first write removes them.
func (s *sight) isCopy() bool {
	detector, ok := s.Config.Base.(storage.CopyDetector)
	if !ok || s.Config.TrustCopies {
		return false
	}
	uid, copied := detector.Copied(s.stored)
	if copied && !s.memory.copied {
		s.memory.copied = true
		s.log.Warn("The object is a copy of another one that was handled, and is handled as a new one. "+
			"Set Persistence.TrustCopies if it was restored from a backup.", "original", uid)
	}
	return copied
}

// estrange keeps the ids of the records of another object for their removal. It
// returns the records of this object: none.
func (s *sight) estrange(records map[string]storage.Record) map[string]storage.Record {
	s.foreign = append(s.Handlers.IDs(), progress.New(records).IDs()...)
	s.foreign = append(s.foreign, progress.HandlingID)
	return nil
}

// disown removes the state of another object, along with what is saved in the same
// write. Otherwise the records of this object would count as the other one's in the
// next turn.
func (s *sight) disown(ctx context.Context, c *change) error {
	if s.foreign == nil {
		return nil
	}
	if err := s.Config.Progress.Save(ctx, s.stored, &c.notes, nil, s.foreign); err != nil {
		return fmt.Errorf("remove the progress of another object: %w", err)
	}
	s.Config.Base.(storage.CopyDetector).Discard(s.stored, &c.notes)
	return nil
}
