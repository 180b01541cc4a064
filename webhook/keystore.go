package webhook

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
)

// KeyStore stores certificates and their private keys for all replicas of an operator. Its
// contents are secret. Implementations must be safe for use by several replicas.
type KeyStore interface {
	// Load returns the items saved last, and their version. Without any save so far,
	// there are no items and no error.
	Load(ctx context.Context) (items map[string][]byte, version string, err error)
	// Save replaces all items if version is still the current one. Otherwise it returns
	// [ErrConflict] and saves nothing.
	Save(ctx context.Context, items map[string][]byte, version string) error
}

// ErrConflict is returned by [KeyStore.Save] if the items changed since they were loaded.
var ErrConflict = errors.New("the stored items changed since they were loaded")

// MemoryStore is a KeyStore in memory. The zero value is empty and ready for use.
type MemoryStore struct {
	mu      sync.Mutex
	items   map[string][]byte
	version int
}

// Load implements [KeyStore].
func (s *MemoryStore) Load(context.Context) (map[string][]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.items), strconv.Itoa(s.version), nil
}

// Save implements [KeyStore].
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
