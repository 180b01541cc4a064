package login

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// store is what logins have brought and what is known about it.
type store struct {
	items map[string]*item         // by the id of the login function
	bad   map[string][]fingerprint // those refused last, the newest at the end
}

// maxBad is how many refused credentials are remembered for each id.
const maxBad = 3

// item are credentials of one login function.
type item struct {
	id    string
	creds Credentials
	mark  fingerprint
	since time.Time // when they came

	// refused says that the server does not accept them, as far as is known.
	refused bool
}

func newStore() *store {
	return &store{items: map[string]*item{}, bad: map[string][]fingerprint{}}
}

// populate takes in what a login has brought, unless it has expired or was
// refused before. It returns those that were refused, in the order of ids.
func (s *store) populate(found map[string]*Credentials, now time.Time) (known []*item) {
	for _, id := range slices.Sorted(maps.Keys(found)) {
		creds := found[id]
		if creds == nil || creds.Config == nil {
			continue
		}
		it := &item{id: id, creds: *creds, mark: fingerprintOf(creds.Config), since: now}
		it.creds.Config = rest.CopyConfig(creds.Config) // its address tells them apart
		switch former := s.items[id]; {
		case it.expired(now):
		case slices.Contains(s.bad[id], it.mark):
			known = append(known, it)
		case former != nil && former.mark == it.mark:
			it.creds.Config = former.creds.Config
			former.creds, former.since = it.creds, now
		default:
			s.items[id] = it
		}
	}
	return known
}

// invalidate drops refused credentials and remembers them.
func (s *store) invalidate(it *item) {
	it.refused = true
	if s.items[it.id] == it {
		delete(s.items, it.id)
	}
	bad := slices.DeleteFunc(s.bad[it.id], func(p fingerprint) bool { return p == it.mark })
	bad = append(bad, it.mark)
	s.bad[it.id] = bad[max(0, len(bad)-maxBad):]
}

// accept forgets that credentials were refused.
func (s *store) accept(it *item) {
	it.refused = false
	s.items[it.id] = it
	s.bad[it.id] = slices.DeleteFunc(s.bad[it.id], func(p fingerprint) bool { return p == it.mark })
}

// expire drops what has expired.
func (s *store) expire(now time.Time) {
	maps.DeleteFunc(s.items, func(_ string, it *item) bool { return it.expired(now) })
}

// has tells whether credentials may be used.
func (s *store) has(it *item) bool { return it != nil && s.items[it.id] == it }

// choose selects from those of the highest priority: the current ones if they
// are among them, else any. It returns nil if there are none.
func (s *store) choose(current *item, random func(n int) int) *item {
	var best []*item
	for _, id := range slices.Sorted(maps.Keys(s.items)) {
		it := s.items[id]
		if len(best) > 0 && it.creds.Priority > best[0].creds.Priority {
			best = nil
		}
		if len(best) == 0 || it.creds.Priority == best[0].creds.Priority {
			best = append(best, it)
		}
	}
	switch {
	case len(best) == 0:
		return nil
	case slices.Contains(best, current):
		return current
	}
	return best[random(len(best))]
}

// nextInTurn is the one to be tried after the current one, of those that were
// all refused before; nil if there are none.
func nextInTurn(refused []*item, current *item) *item {
	for _, it := range refused {
		if current != nil && it.id > current.id {
			return it
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return refused[0]
}

func (it *item) expired(now time.Time) bool {
	return !it.creds.Expires.IsZero() && !it.creds.Expires.After(now)
}

// maxLead is how long before the expiry a login is made, at the most.
const maxLead = time.Minute

// renewal is when to log in so that others are there before these expire;
// zero for never.
func (it *item) renewal() time.Time {
	if it.creds.Expires.IsZero() {
		return time.Time{}
	}
	lead := min(it.creds.Expires.Sub(it.since)/10, maxLead)
	return it.creds.Expires.Add(-lead)
}
