package model_test

import (
	"context"
	"errors"
	"maps"
	"sync"

	"gopf.dev/gopf/storage"
)

// outside keeps the state of handling outside of the objects, for all processes.
type outside struct {
	mu      sync.Mutex
	records map[string]map[string]storage.Record // by uid and id
	bases   map[string]string                    // by uid, as JSON
}

func newOutside() *outside {
	return &outside{records: map[string]map[string]storage.Record{}, bases: map[string]string{}}
}

var errKilled = errors.New("the process is dead")

type (
	outsideProgress struct{ *process }
	outsideBase     struct{ *process }
)

// Load implements storage.Progress.
func (s outsideProgress) Load(_ context.Context, o storage.Object, ids []string) (map[string]storage.Record, error) {
	if s.isDead() {
		return nil, errKilled
	}
	s.outside.mu.Lock()
	defer s.outside.mu.Unlock()
	found := map[string]storage.Record{}
	for _, id := range ids {
		if r, ok := s.outside.records[o.Identity().UID][id]; ok {
			found[id] = r
		}
	}
	return found, nil
}

// Save implements storage.Progress.
func (s outsideProgress) Save(_ context.Context, o storage.Object, _ storage.Patch, changed map[string]storage.Record, purge []string) error {
	if s.isDead() {
		return errKilled
	}
	s.outside.mu.Lock()
	defer s.outside.mu.Unlock()
	uid := o.Identity().UID
	if s.outside.records[uid] == nil {
		s.outside.records[uid] = map[string]storage.Record{}
	}
	maps.Copy(s.outside.records[uid], changed)
	for _, id := range purge {
		delete(s.outside.records[uid], id)
	}
	return nil
}

// Clean implements storage.Progress.
func (outsideProgress) Clean(map[string]any) {}

// Load implements storage.Base.
func (s outsideBase) Load(_ context.Context, o storage.Object) (map[string]any, bool, error) {
	if s.isDead() {
		return nil, false, errKilled
	}
	s.outside.mu.Lock()
	defer s.outside.mu.Unlock()
	text, ok := s.outside.bases[o.Identity().UID]
	if !ok {
		return nil, false, nil
	}
	return storage.DecodeEssence(text)
}

// Save implements storage.Base.
func (s outsideBase) Save(_ context.Context, o storage.Object, _ storage.Patch, essence map[string]any) error {
	if s.isDead() {
		return errKilled
	}
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		return err
	}
	s.outside.mu.Lock()
	defer s.outside.mu.Unlock()
	s.outside.bases[o.Identity().UID] = text
	return nil
}

// Clean implements storage.Base.
func (outsideBase) Clean(map[string]any) {}
