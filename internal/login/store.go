package login

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// store contains the credentials from logins, and which of them were rejected.
type store struct {
	items map[string]*item         // by the id of the login function
	bad   map[string][]fingerprint // rejected last, newest at the end
}

// maxBad is the number of rejected credentials that are remembered per id.
const maxBad = 3

// item contains the credentials of one login function.
type item struct {
	id    string
	creds Credentials
	mark  fingerprint
	since time.Time // time of the login

	// refused is true if the server rejects them, as far as is known.
	refused bool
}

func newStore() *store {
	return &store{items: map[string]*item{}, bad: map[string][]fingerprint{}}
}

// populate stores the result of a login, except credentials that have expired or were
// rejected before. It returns the rejected ones, ordered by id.
func (s *store) populate(found map[string]*Credentials, now time.Time) (known []*item) {
	for _, id := range slices.Sorted(maps.Keys(found)) {
		creds := found[id]
		if creds == nil || creds.Config == nil {
			continue
		}
		it := &item{id: id, creds: *creds, mark: fingerprintOf(creds.Config), since: now}
		it.creds.Config = rest.CopyConfig(creds.Config) // its address identifies them
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

// invalidate removes rejected credentials and remembers them.
func (s *store) invalidate(it *item) {
	it.refused = true
	if s.items[it.id] == it {
		delete(s.items, it.id)
	}
	bad := slices.DeleteFunc(s.bad[it.id], func(p fingerprint) bool { return p == it.mark })
	bad = append(bad, it.mark)
	s.bad[it.id] = bad[max(0, len(bad)-maxBad):]
}

// accept forgets that the credentials were rejected.
func (s *store) accept(it *item) {
	it.refused = false
	s.items[it.id] = it
	s.bad[it.id] = slices.DeleteFunc(s.bad[it.id], func(p fingerprint) bool { return p == it.mark })
}

// expire removes expired credentials.
func (s *store) expire(now time.Time) {
	maps.DeleteFunc(s.items, func(_ string, it *item) bool { return it.expired(now) })
}

// has reports whether the credentials may be used.
func (s *store) has(it *item) bool { return it != nil && s.items[it.id] == it }

// choose returns credentials of the highest priority: the current ones if they qualify,
// else a random one. nil means that there are none.
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

// nextInTurn returns the credentials to try after the current ones, when all were
// rejected before. nil means that there are none.
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

// maxLead limits how long before the expiry a login is made.
const maxLead = time.Minute

// renewal returns the time of the login that replaces these credentials before they
// expire. Zero means never.
func (it *item) renewal() time.Time {
	if it.creds.Expires.IsZero() {
		return time.Time{}
	}
	lead := min(it.creds.Expires.Sub(it.since)/10, maxLead)
	return it.creds.Expires.Add(-lead)
}
