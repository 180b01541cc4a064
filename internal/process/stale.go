package process

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// removeStaleNote returns how to remove a handling note that no handling goes with;
// nil if the note is absent or in use. It is for objects that are as they were
// handled last.
func (s *sight) removeStaleNote(state *progress.State, note storage.Record) func(context.Context, *change) error {
	if !staleNote(state, note) {
		return nil
	}
	s.log.Debug("Removing the note about a handling that another operator has finished.")
	return func(ctx context.Context, c *change) error {
		if err := s.Config.Progress.Save(ctx, s.stored, &c.notes, nil, []string{progress.HandlingID}); err != nil {
			return fmt.Errorf("remove a stale note: %w", err)
		}
		return nil
	}
}

// staleNote reports whether the note belongs to a handling that Kopf has taken over
// and finished: Kopf purges the records of the handlers and does not know the note.
// While a handling is under way, there are records with the purpose of the note.
func staleNote(state *progress.State, note storage.Record) bool {
	return note.Message != nil && len(state.Recorded(cause.Reason(note.Purpose))) == 0
}
