package daemon

import (
	"container/list"
	"sync"
	"time"
)

// lines has the timers that are due, but wait because the running handlers of their namespace
// take too much memory. Waiting timers have no goroutine: a tenant can have many objects whose
// timers are due at the same time, after a pause for example.
type lines struct {
	mu      sync.Mutex
	waiting map[Lane]*list.List // of waiting, in the order in which they became due
}

// Lane has the timers that wait for each other.
type Lane struct {
	Namespace string
	// Large is true for objects of 16 KiB of JSON or more. Their calls may also wait for the memory
	// of large objects, and timers of small ones must not wait for that.
	Large bool
}

// largeObject is the size from which on an object is large, in bytes of JSON.
const largeObject = 16 << 10

// waiting is an element of a line. The place of the task is this element.
type waiting struct {
	task *Task
	lane Lane
}

// push adds a task to the end of a line. It returns false if the task already waits.
func (l *lines) push(lane Lane, t *Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.place != nil {
		return false
	}
	if l.waiting == nil {
		l.waiting = map[Lane]*list.List{}
	}
	line := l.waiting[lane]
	if line == nil {
		line = list.New()
		l.waiting[lane] = line
	}
	t.place = line.PushBack(waiting{t, lane})
	return true
}

// first returns the task that has waited longest in a line, or nil.
func (l *lines) first(lane Lane) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[lane]
	if line == nil {
		return nil
	}
	return line.Front().Value.(waiting).task
}

// remove removes a task from its line. It returns false if the task does not wait.
func (l *lines) remove(t *Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.place == nil {
		return false
	}
	lane := t.place.Value.(waiting).lane
	line := l.waiting[lane]
	line.Remove(t.place)
	if line.Len() == 0 {
		delete(l.waiting, lane)
	}
	t.place = nil
	return true
}

// admit starts the timers that wait in a line, as long as its namespace may have another running
// handler. The caller must hold no lock of an object.
func (s *Set) admit(lane Lane) {
	for {
		t := s.lines.first(lane)
		if t == nil {
			return
		}
		leave := s.Admit(lane, t.object.size(), func() { s.admit(lane) })
		if leave == nil {
			return // called again when there is room
		}
		if !s.lines.remove(t) { // it has ended, or was started concurrently
			leave()
			continue
		}
		t.enter(leave)
	}
}

// enter starts the goroutine of a timer that waited in a line, if its call is still due.
func (t *Task) enter(leave func()) {
	var then actions
	t.object.mu.Lock()
	now := time.Now()
	if t.ended || t.run != nil || !t.isDue(now) {
		then.add(leave)
		t.proceed(now, &then)
	} else {
		t.begin(leave)
	}
	t.object.mu.Unlock()
	then.do()
}

// beginOrWait starts the goroutine of a task that is due. A timer first waits in the line of its
// namespace. A result that is left when the task is stopped does not: its write must not wait
// for handlers that run until the operator exits.
func (t *Task) beginOrWait(then *actions) {
	s := t.object.set
	if s.Admit == nil || !t.spec.Timer || t.stop != nil {
		s.lines.remove(t)
		t.begin(func() {})
		return
	}
	if lane := t.object.lane(); s.lines.push(lane, t) {
		then.add(func() { s.admit(lane) })
	}
}
