package handler

import (
	"reflect"
	"sync"
)

// Memos has the values that handlers keep in memory with an object, one of each type.
// The zero value is ready for use. It is safe for concurrent use.
type Memos struct {
	mu     sync.Mutex
	values map[reflect.Type]any
}

// Get returns a pointer to the value of the type. The value is zero at first.
func (m *Memos) Get(t reflect.Type) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[reflect.Type]any{}
	}
	if m.values[t] == nil {
		m.values[t] = reflect.New(t).Interface()
	}
	return m.values[t]
}
