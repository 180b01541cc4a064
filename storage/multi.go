package storage

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// DefaultProgress returns Kopf's default storage of progress: records are stored in
// annotations. Records that older versions of Kopf left in the status are read, and purged
// when their handling ends.
func DefaultProgress() Progress {
	return SmartProgress(NewAnnotationProgress(DefaultPrefix), NewStatusProgress(DefaultName))
}

// DefaultBase returns Kopf's default storage of the base: an annotation.
func DefaultBase() Base {
	return NewAnnotationBase(DefaultPrefix)
}

// SmartProgress stores records in annotations. It also reads and purges records in the
// status, but writes none there.
func SmartProgress(annotations *AnnotationProgress, status *StatusProgress) Progress {
	return MultiProgress(annotations, RetiredProgress(status))
}

// MultiProgress stores records in all of the storages, and reads each record from the
// first storage that has it.
//
// To move from one storage to another, first run with the new and the old one, in this
// order, until all handlings that began before are complete. Then run with the new one
// alone. With the old one in [RetiredProgress], nothing is written to it meanwhile, but
// then you cannot go back.
func MultiProgress(storages ...Progress) Progress {
	return multiProgress(storages)
}

// RetiredProgress wraps a storage that is being phased out: its records are read, purged
// and cleaned, but no new ones are written.
func RetiredProgress(storage Progress) Progress {
	return retiredProgress{storage}
}

// MultiBase stores essences in all of the storages, and reads them from the first storage
// that has one. To move from one storage to another, run with the new and the old one, in
// this order, until all objects have been handled.
func MultiBase(storages ...Base) Base {
	return multiBase(storages)
}

type multiProgress []Progress

func (m multiProgress) Load(ctx context.Context, o Object, ids []string) (map[string]Record, error) {
	records := make(map[string]Record)
	var damaged damage
	for _, storage := range m {
		missing := ids
		if len(records) > 0 {
			missing = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
				_, ok := records[id]
				return ok
			})
		}
		if len(missing) == 0 {
			break
		}
		found, err := storage.Load(ctx, o, missing)
		if malformed, ok := errors.AsType[*MalformedError](err); ok {
			damaged.join(malformed)
		} else if err != nil {
			return nil, err
		}
		maps.Copy(records, found)
	}
	maps.DeleteFunc(damaged, func(id string, _ *MalformedError) bool { // another storage has a readable one
		_, found := records[id]
		return found
	})
	return records, damaged.err()
}

// InStatus implements [Placed].
func (m multiProgress) InStatus() bool {
	some := false
	for _, storage := range m {
		if _, retired := storage.(retiredProgress); retired {
			continue
		}
		if placed, ok := storage.(Placed); !ok || !placed.InStatus() {
			return false
		}
		some = true
	}
	return some
}

func (m multiProgress) Save(ctx context.Context, o Object, p Patch, changed map[string]Record, purge []string) error {
	for _, storage := range m {
		if err := storage.Save(ctx, o, p, changed, purge); err != nil {
			return err
		}
	}
	return nil
}

func (m multiProgress) Clean(essence map[string]any) {
	for _, storage := range m {
		storage.Clean(essence)
	}
}

func (m multiProgress) Untouch(o Object, p Patch) {
	for _, storage := range m {
		if storage, ok := storage.(Untoucher); ok {
			storage.Untouch(o, p)
		}
	}
}

func (m multiProgress) Validate() error {
	return validate(m)
}

func (m multiProgress) CheckID(id string) error {
	for _, storage := range m {
		if storage, ok := storage.(IDChecker); ok {
			if err := storage.CheckID(id); err != nil {
				return err
			}
		}
	}
	return nil
}

type retiredProgress struct {
	storage Progress
}

func (r retiredProgress) Load(ctx context.Context, o Object, ids []string) (map[string]Record, error) {
	return r.storage.Load(ctx, o, ids)
}

func (r retiredProgress) Save(ctx context.Context, o Object, p Patch, _ map[string]Record, purge []string) error {
	return r.storage.Save(ctx, o, p, nil, purge)
}

func (r retiredProgress) Clean(essence map[string]any) {
	r.storage.Clean(essence)
}

func (r retiredProgress) Validate() error {
	return validate([]Progress{r.storage})
}

type multiBase []Base

func (m multiBase) Load(ctx context.Context, o Object) (essence map[string]any, found bool, err error) {
	for _, storage := range m {
		if essence, found, err = storage.Load(ctx, o); err != nil || found {
			return essence, found, err
		}
	}
	return nil, false, nil
}

func (m multiBase) Save(ctx context.Context, o Object, p Patch, essence map[string]any) error {
	for _, storage := range m {
		if err := storage.Save(ctx, o, p, essence); err != nil {
			return err
		}
	}
	return nil
}

func (m multiBase) Clean(essence map[string]any) {
	for _, storage := range m {
		storage.Clean(essence)
	}
}

func (m multiBase) CleanObject(o Object, essence map[string]any) {
	for _, storage := range m {
		if cleaner, ok := storage.(ObjectCleaner); ok {
			cleaner.CleanObject(o, essence)
		} else {
			storage.Clean(essence)
		}
	}
}

func (m multiBase) Validate() error {
	return validate(m)
}

func validate[S any](storages []S) error {
	var errs []error
	for _, storage := range storages {
		if validator, ok := any(storage).(Validator); ok {
			errs = append(errs, validator.Validate())
		}
	}
	return errors.Join(errs...)
}
