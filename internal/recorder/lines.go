package recorder

// The limits of events that wait to be posted. Further ones are lost; their number is
// logged.
const (
	backlog      = 1000 // of one namespace
	wholeBacklog = 4000 // of all namespaces
)

// lines are the waiting events. Namespaces take turns, so a tenant that causes many events
// does not delay those of others. lines is not safe for concurrent use.
type lines struct {
	of      map[string][]Event // by the namespace of the object
	turns   []string           // the namespaces with waiting events; the next one is first
	waiting int
}

// put adds an event, and reports whether there was room. If too many events wait, it drops
// the last event of the namespace with the most, unless that has hardly more than this one.
func (l *lines) put(e Event) (queued, displaced bool) {
	line := l.of[e.About.Namespace]
	if len(line) >= backlog {
		return false, false
	}
	if l.waiting >= wholeBacklog {
		if displaced = l.displace(len(line) + 1); !displaced {
			return false, false
		}
	}
	if len(line) == 0 {
		l.turns = append(l.turns, e.About.Namespace)
	}
	if l.of == nil {
		l.of = map[string][]Event{}
	}
	l.of[e.About.Namespace] = append(line, e)
	l.waiting++
	return true, displaced
}

// displace drops the last event of the namespace with the most waiting events, if it has
// more than the given number, which is at least 1.
func (l *lines) displace(most int) bool {
	largest, found := "", false
	for namespace, line := range l.of {
		if len(line) > most {
			largest, most, found = namespace, len(line), true
		}
	}
	if !found {
		return false
	}
	line := l.of[largest]
	line[len(line)-1] = Event{}
	l.of[largest] = line[:len(line)-1]
	l.waiting--
	return true
}

// take removes and returns the next event. ok is false if there is none.
func (l *lines) take() (e Event, ok bool) {
	if len(l.turns) == 0 {
		return Event{}, false
	}
	namespace := l.turns[0]
	l.turns = l.turns[1:]
	line := l.of[namespace]
	e, line[0] = line[0], Event{}
	if line = line[1:]; len(line) > 0 {
		l.of[namespace] = line
		l.turns = append(l.turns, namespace)
	} else {
		delete(l.of, namespace)
	}
	l.waiting--
	return e, true
}
