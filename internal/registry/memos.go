package registry

import (
	"reflect"
	"sync"
)

// Memos are values that users keep with an object while it exists, one of each
// type. The zero value is ready for use, from any goroutine.
type Memos struct {
	mu     sync.Mutex
	values map[reflect.Type]any
}

// Get returns the pointer to the value of the type, which is zero at first.
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
