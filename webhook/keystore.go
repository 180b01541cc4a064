package webhook

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
)

// KeyStore keeps certificates and their keys for all replicas of an operator.
// What it keeps is secret.
type KeyStore interface {
	// Load reads what was saved last, and its version. If nothing ever was, there
	// are no items.
	Load(ctx context.Context) (items map[string][]byte, version string, err error)
	// Save replaces everything, if the version is still the one that was loaded.
	// Otherwise the error is an [ErrConflict], and nothing is saved.
	Save(ctx context.Context, items map[string][]byte, version string) error
}

// ErrConflict tells that somebody else has saved something meanwhile.
var ErrConflict = errors.New("somebody else has changed it meanwhile")

// MemoryStore keeps keys in memory. The zero value is empty and ready for use.
type MemoryStore struct {
	mu      sync.Mutex
	items   map[string][]byte
	version int
}

// Load returns what is kept.
func (s *MemoryStore) Load(context.Context) (map[string][]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.items), strconv.Itoa(s.version), nil
}

// Save replaces what is kept.
func (s *MemoryStore) Save(_ context.Context, items map[string][]byte, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != strconv.Itoa(s.version) {
		return ErrConflict
	}
	s.items = maps.Clone(items)
	s.version++
	return nil
}
