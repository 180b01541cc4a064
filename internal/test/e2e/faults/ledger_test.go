package faults_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// ledger has the writes to the tests' objects that the server has applied, in
// their order.
type ledger struct {
	mu      sync.Mutex
	applied []entry
	refused map[int]int // how many, by code
}

type entry struct {
	name, subresource string
	version           string // that came out of it
	body              string
}

func (e entry) String() string {
	return fmt.Sprintf("%s/%s@%s: %s", e.name, e.subresource, e.version, e.body)
}

func (l *ledger) enter(x *exchange, code int, answer []byte) {
	if x.resource != patients {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if code/100 != 2 {
		if l.refused == nil {
			l.refused = map[int]int{}
		}
		l.refused[code]++
		return
	}
	var obj struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal(answer, &obj)
	l.applied = append(l.applied, entry{x.name, x.subresource, obj.Metadata.ResourceVersion, string(x.body)})
}

func (l *ledger) all() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.applied)
}

// idle are the writes that have changed nothing.
func (l *ledger) idle() (found []entry) {
	seen := map[string]bool{}
	for _, e := range l.all() {
		if key := e.name + "@" + e.version; seen[key] {
			found = append(found, e)
		} else {
			seen[key] = true
		}
	}
	return found
}
