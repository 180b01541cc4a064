package process

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// isCopy reports whether the stored state was copied from another object. The object
// is then handled as a new one: base, records and note count as absent, and the first
// write removes them.
func (v *view) isCopy() bool {
	detector, ok := v.Config.Base.(storage.CopyDetector)
	if !ok || v.Config.TrustCopies {
		return false
	}
	uid, copied := detector.Copied(v.stored)
	if copied && v.memory.facts.first(reportedCopy) {
		v.log.Warn("The object has the stored state of another object and is handled as a new one. "+
			"Set Persistence.TrustCopies if it was restored from a backup.", "original", loglimit.Cut(uid))
	}
	return copied
}

// ignoreRecords notes the ids of another object's records for removeForeign.
func (v *view) ignoreRecords(records map[string]storage.Record) {
	v.foreign = append(v.Handlers.IDs(), progress.New(records).IDs()...)
	v.foreign = append(v.foreign, progress.HandlingID)
}

// removeForeign removes the state of another object in the same write that saves the
// state of this one. Otherwise the next turn would ignore the records of this object
// as well.
func (v *view) removeForeign(ctx context.Context, c *change) error {
	if v.foreign == nil {
		return nil
	}
	if err := v.Config.Progress.Save(ctx, v.stored, &c.notes, nil, v.foreign); err != nil {
		return fmt.Errorf("remove the copied progress of another object: %w", err)
	}
	v.Config.Base.(storage.CopyDetector).Discard(v.stored, &c.notes)
	return nil
}
