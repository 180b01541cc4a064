package handler

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// Memos has the values that handlers keep in memory with an object, one of each type.
// The zero value is ready for use. It is safe for concurrent use, and it is small, because
// most objects have no such values.
type Memos struct {
	held atomic.Pointer[memos] // nil before the first value
}

type memos struct {
	mu     sync.Mutex
	values map[reflect.Type]any
}

// Get returns a pointer to the value of the type. The value is zero at first.
func (m *Memos) Get(t reflect.Type) any {
	if m.held.Load() == nil {
		m.held.CompareAndSwap(nil, &memos{values: map[reflect.Type]any{}})
	}
	held := m.held.Load()
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.values[t] == nil {
		held.values[t] = reflect.New(t).Interface()
	}
	return held.values[t]
}
