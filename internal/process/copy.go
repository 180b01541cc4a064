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
func (v *view) isCopy() bool {
	detector, ok := v.Config.Base.(storage.CopyDetector)
	if !ok || v.Config.TrustCopies {
		return false
	}
	uid, copied := detector.Copied(v.stored)
	if copied && !v.memory.copied {
		v.memory.copied = true
		v.log.Warn("The object is a copy of another one that was handled, and is handled as a new one. "+
			"Set Persistence.TrustCopies if it was restored from a backup.", "original", uid)
	}
	return copied
}

// estrange keeps the ids of the records of another object for their removal. It
// returns the records of this object: none.
func (v *view) ignoreRecords(records map[string]storage.Record) map[string]storage.Record {
	v.foreign = append(v.Handlers.IDs(), progress.New(records).IDs()...)
	v.foreign = append(v.foreign, progress.HandlingID)
	return nil
}

// disown removes the state of another object, along with what is saved in the same
// write. Otherwise the records of this object would count as the other one's in the
// next turn.
func (v *view) removeForeign(ctx context.Context, c *change) error {
	if v.foreign == nil {
		return nil
	}
	if err := v.Config.Progress.Save(ctx, v.stored, &c.notes, nil, v.foreign); err != nil {
		return fmt.Errorf("remove the progress of another object: %w", err)
	}
	v.Config.Base.(storage.CopyDetector).Discard(v.stored, &c.notes)
	return nil
}
