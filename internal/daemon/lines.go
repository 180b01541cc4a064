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
	waiting map[string]*list.List // of waiting, by namespace, in the order in which they became due
}

// waiting is an element of a line. The place of the task is this element.
type waiting struct {
	task      *Task
	namespace string
}

// push adds a task to the end of the line of a namespace. It returns false if the task already
// waits.
func (l *lines) push(namespace string, t *Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.place != nil {
		return false
	}
	if l.waiting == nil {
		l.waiting = map[string]*list.List{}
	}
	line := l.waiting[namespace]
	if line == nil {
		line = list.New()
		l.waiting[namespace] = line
	}
	t.place = line.PushBack(waiting{t, namespace})
	return true
}

// first returns the task that has waited longest in a namespace, or nil.
func (l *lines) first(namespace string) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[namespace]
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
	namespace := t.place.Value.(waiting).namespace
	line := l.waiting[namespace]
	line.Remove(t.place)
	if line.Len() == 0 {
		delete(l.waiting, namespace)
	}
	t.place = nil
	return true
}

// busy reports whether a task waits in a namespace.
func (l *lines) busy(namespace string) bool { return l.first(namespace) != nil }

// admit starts the timers that wait in a namespace, as long as it may have another running
// handler. The caller must hold no lock of an object.
func (s *Set) admit(namespace string) {
	for {
		t := s.lines.first(namespace)
		if t == nil {
			return
		}
		leave := s.Admit(namespace, t.object.size(), func() { s.admit(namespace) })
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
	if namespace := t.object.namespace(); s.lines.push(namespace, t) {
		then.add(func() { s.admit(namespace) })
	}
}
