package queue

// load is the weight of waiting entries of one key, and the bytes that shed ones keep.
type load struct{ ordinary, costly, kept int }

func (l *load) add(other load, sign int) {
	l.ordinary += sign * other.ordinary
	l.costly += sign * other.costly
	l.kept += sign * other.kept
}

// weigh updates the loads of the waiting entries of an actor, of which those before the
// given one are unchanged.
func (q *Queue[K, E]) weigh(key K, a *actor[E], from int) {
	from = max(0, min(from, len(a.waiting)-1))
	for _, l := range a.loads[from:] {
		a.load.add(l, -1)
	}
	a.loads = a.loads[:from]
	for _, e := range a.waiting[from:] {
		l := q.loadOf(key, e)
		a.loads = append(a.loads, l)
		a.load.add(l, 1)
	}
}

func (q *Queue[K, E]) loadOf(key K, e E) load {
	l := load{kept: q.config.Keeps(e)}
	if q.config.Cost(key, e) > 0 {
		l.costly = q.config.Weigh(e)
	} else {
		l.ordinary = q.config.Weigh(e)
	}
	return l
}

// count adds the load of an actor to that of the queue, or subtracts it.
func (q *Queue[K, E]) count(a *actor[E], sign int) {
	q.kept += sign * a.load.kept
	q.config.Backlog.add(0, sign*a.load.kept)
	if a.running {
		q.parked += sign * (a.load.ordinary + a.load.costly)
		return
	}
	q.weight += sign * a.load.ordinary
	q.costly += sign * a.load.costly
	q.config.Backlog.add(sign*a.load.costly, 0)
	if a.load.ordinary > 0 {
		if q.shares[a.group] += sign * a.load.ordinary; q.shares[a.group] == 0 {
			delete(q.shares, a.group)
		}
	}
}
