// Package history keeps the latest steps of all objects in memory, for their timelines. Its
// memory is fixed: one ring for the whole operator, in which new entries replace the oldest.
package history

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// Step is a kind of entry.
type Step uint8

// The steps.
const (
	Turn   Step = iota + 1 // a turn of the object; the text is its reason
	Call                   // a call of a handler; the text is its error
	Write                  // a change that was sent to the API server; the text is its error
	Posted                 // a Kubernetes event that was posted; the text is its reason and message
)

var steps = [...]string{Turn: "turn", Call: "call", Write: "write", Posted: "event"}

func (s Step) String() string { return steps[s] }

// Entry is one step of one object.
type Entry struct {
	At      time.Time // its start
	Took    time.Duration
	Step    Step
	Handler string // of a call: its id
	Outcome string // of calls and writes
	Text    string // it may be truncated
}

// Budget is the size of a ring in bytes.
const Budget = slots * slotSize

const (
	slots    = 16384
	slotSize = 128
	letters  = slotSize - 3*8 - 4

	// The longest parts of the ids of handlers and of outcomes that are kept.
	maxHandler = 40
	maxOutcome = 12
)

// slot is a stored entry. It has no pointers: the garbage collector never reads the ring,
// and the ring keeps no other memory alive.
type slot struct {
	at, took               int64
	object                 uint64 // a hash of the uid
	step                   Step
	handler, outcome, text uint8 // lengths
	letters                [letters]byte
}

// Ring has the latest entries of an operator. It is safe for concurrent use. A nil ring
// stores nothing.
type Ring struct {
	seed maphash.Seed

	mu    sync.Mutex
	slots []slot
	next  int
	full  bool
}

// New returns an empty ring.
func New() *Ring { return &Ring{seed: maphash.MakeSeed(), slots: make([]slot, slots)} }

// Add adds an entry of the object with the uid. It allocates nothing.
func (r *Ring) Add(uid string, e Entry) {
	if r == nil {
		return
	}
	object, at := maphash.String(r.seed, uid), e.At.UnixNano()
	r.mu.Lock()
	s := &r.slots[r.next]
	if r.next++; r.next == len(r.slots) {
		r.next, r.full = 0, true
	}
	s.at, s.took, s.object, s.step = at, int64(e.Took), object, e.Step
	h := copy(s.letters[:], clip(e.Handler, maxHandler))
	o := copy(s.letters[h:], clip(e.Outcome, maxOutcome))
	t := copy(s.letters[h+o:], clip(e.Text, letters-h-o))
	s.handler, s.outcome, s.text = uint8(h), uint8(o), uint8(t)
	r.mu.Unlock()
}

// clip returns at most the first n bytes of a text. It never splits a character.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Of returns the entries of the object with the uid, sorted by their start.
func (r *Ring) Of(uid string) []Entry {
	if r == nil {
		return nil
	}
	object := maphash.String(r.seed, uid)
	r.mu.Lock()
	defer r.mu.Unlock()
	var entries []Entry
	used := r.next
	if r.full {
		used = len(r.slots)
	}
	for i := range used {
		s := &r.slots[i]
		if s.object != object {
			continue
		}
		h, o := int(s.handler), int(s.handler)+int(s.outcome)
		entries = append(entries, Entry{
			At: time.Unix(0, s.at), Took: time.Duration(s.took), Step: s.step,
			Handler: string(s.letters[:h]), Outcome: string(s.letters[h:o]), Text: string(s.letters[o : o+int(s.text)]),
		})
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Step, b.Step)) })
	return entries
}
