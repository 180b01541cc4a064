package model_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/gopftest"
)

// randomPlan returns the actions in a world, in episodes. After each episode, the world comes
// to rest.
func randomPlan(r *rand.Rand, th theme, u *users) [][]action {
	names := u.names
	trouble := pick(r, th.trouble)
	gaps := pick(r, [][]time.Duration{
		{0, 0, 50 * time.Millisecond, time.Second},
		{0, time.Second, 5 * time.Second, 20 * time.Second},
		{5 * time.Second, 20 * time.Second, time.Minute},
		{0, 50 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, 90 * time.Second},
	})
	var plan [][]action
	for range 2 + r.IntN(4) {
		var episode []action
		for range 3 + r.IntN(6) {
			var a action
			if chance(r, trouble) {
				a = randomTrouble(r, th, u)
			} else {
				a = u.next()
			}
			a.after = pick(r, gaps)
			episode = append(episode, a)
		}
		for _, name := range names {
			if chance(r, 70) {
				episode = append(episode, action{text: "release " + name, do: func(w *world) { w.release(name) }})
			}
		}
		plan = append(plan, episode)
	}
	for _, name := range names {
		last := &plan[len(plan)-1]
		*last = append(*last, action{text: "release " + name, do: func(w *world) { w.release(name) }})
	}
	return plan
}

// randomTrouble returns a fault for the operator.
func randomTrouble(r *rand.Rand, th theme, u *users) action {
	switch weighted(r, th.kinds) {
	case 0:
		return randomEnd(r, u)
	case 1:
		slot := r.IntN(u.slots)
		return pick(r, []action{
			{text: "freeze", do: func(w *world) { w.current(slot).op.Pause("for a test") }},
			{text: "resume", do: func(w *world) { w.current(slot).op.Unpause() }},
			{text: "freeze and resume", do: func(w *world) { op := w.current(slot).op; op.Pause("for a test"); op.Unpause() }},
			{text: "freeze for a second", do: func(w *world) {
				op := w.current(slot).op
				op.Pause("for a test")
				time.Sleep(time.Second)
				op.Unpause()
			}},
		})
	case 2:
		return pick(r, []action{
			{text: "cut streams", do: func(w *world) { w.cluster.CutStreams() }},
			{text: "expire and cut streams", do: func(w *world) { w.cluster.Expire(); w.cluster.CutStreams() }},
		})
	case 3:
		if u.slots > 1 && chance(r, 70) {
			return randomPartition(r, u)
		}
		return besides(r, u)
	case 4:
		return randomStreamFault(r)
	}
	return randomRequestFault(r)
}

// randomEnd ends the process: immediately, at one of its next writes, or gracefully.
func randomEnd(r *rand.Rand, u *users) action {
	slot := r.IntN(u.slots)
	down := pick(r, []time.Duration{0, 0, time.Second, 30 * time.Second, 2 * time.Minute})
	set := func(w *world) *process {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.downtime = down
		return w.slots[slot]
	}
	switch n, after := 1+r.IntN(3), chance(r, 50); r.IntN(3) {
	case 0:
		return action{text: fmt.Sprint("kill for ", down), do: func(w *world) { set(w).kill() }}
	case 1:
		return action{text: fmt.Sprint("stop for ", down), do: func(w *world) { set(w).stop() }}
	default:
		return action{text: fmt.Sprintf("crash at write %d, after=%v, for %s", n, after, down), do: func(w *world) { set(w).crash(n, after) }}
	}
}

// randomPartition disconnects one process from the cluster for some time.
func randomPartition(r *rand.Rand, u *users) action {
	slot := r.IntN(u.slots)
	d := pick(r, []time.Duration{time.Second, 45 * time.Second, 3 * time.Minute})
	return action{text: fmt.Sprintf("sever replica %d for %s", slot, d), do: func(w *world) {
		p := w.current(slot)
		p.sever(true)
		time.AfterFunc(d, func() { p.sever(false) })
	}}
}

// besides plans a user's change between a read and a write of the operator.
func besides(r *rand.Rand, u *users) action {
	name := pick(r, u.names)
	if !u.present[name] {
		return u.create(name)
	}
	n := 1 + r.IntN(3)
	inner := u.change(name)
	if chance(r, 15) {
		inner = action{text: "delete " + name, do: func(w *world) { w.delete(name) }}
		u.present[name] = false
	}
	namespace, short := locate(name)
	match := gopftest.Requests("patch", "things").Where(ofOperator).Object(namespace, short).Nth(n)
	return action{text: fmt.Sprintf("before write %d: %s", n, inner.text), do: func(w *world) {
		w.fault(match, gopftest.Before(func(gopftest.Request) {
			w.history.add("-- before a write: %s", inner.text)
			inner.do(w)
		}))
	}}
}

type namedEffect struct {
	name   string
	effect gopftest.Effect
}

func randomStreamFault(r *rand.Rand) action {
	d := pick(r, []time.Duration{20 * time.Millisecond, time.Second, 10 * time.Second})
	lasts := pick(r, []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute})
	e := pick(r, []namedEffect{
		{fmt.Sprint("events delayed by ", d), gopftest.DelayEvents(d)},
		{fmt.Sprint("events delayed by ", d), gopftest.DelayEvents(d)},
		{"events replayed", gopftest.ReplayEvents()},
		{"events replayed", gopftest.ReplayEvents()},
		{"events doubled", gopftest.DuplicateEvents()},
		{"events replayed", gopftest.ReplayEvents()},
		{"events replayed", gopftest.ReplayEvents()},
		{"events garbled", gopftest.GarbleEvents()},
		{"cut before events", gopftest.CutBeforeEvents()},
		{"cut inside events", gopftest.CutInsideEvents()},
		{"streams frozen", gopftest.FreezeStreams()},
	})
	return action{text: fmt.Sprintf("%s for %s", e.name, lasts), do: func(w *world) {
		w.oracle.replays = w.oracle.replays || e.name == "events replayed"
		w.fault(gopftest.Requests("watch", "things").During(lasts), e.effect)
	}}
}

func randomRequestFault(r *rand.Rand) action {
	verb := pick(r, []string{"patch", "patch", "get", "list", "watch", ""})
	n := pick(r, []int{1, 1, 2, 5})
	d := pick(r, []time.Duration{100 * time.Millisecond, 3 * time.Second, 40 * time.Second})
	match := gopftest.Requests(verb, "things")
	if verb == "" {
		match = gopftest.Requests("", "")
	}
	match = match.Where(ofOperator)
	counted, timed := match.First(n), match.During(d)
	type planned struct {
		namedEffect
		match gopftest.Match
	}
	e := pick(r, []planned{
		{namedEffect{"409", gopftest.Fail(409)}, counted},
		{namedEffect{"429", gopftest.FailWith(apierrors.NewTooManyRequests("slow down", 2))}, counted},
		{namedEffect{"500", gopftest.Fail(500)}, counted},
		{namedEffect{"503", gopftest.Fail(503)}, timed},
		{namedEffect{"504", gopftest.FailWith(apierrors.NewTimeoutError("a test", 1))}, counted},
		{namedEffect{"410", gopftest.Fail(410)}, counted},
		{namedEffect{"dropped", gopftest.Drop()}, counted},
		{namedEffect{"dropped", gopftest.Drop()}, timed},
		{namedEffect{"answers lost", gopftest.LoseAnswer()}, counted},
		{namedEffect{"answers lost", gopftest.LoseAnswer()}, counted},
		{namedEffect{"garbled", gopftest.Garble()}, counted},
		{namedEffect{fmt.Sprint("held for ", d), gopftest.Hold(d)}, counted},
		{namedEffect{fmt.Sprint("answers held for ", d), gopftest.HoldAnswer(d)}, counted},
		{namedEffect{"hanging", gopftest.Hang()}, timed},
		{namedEffect{"answers hanging", gopftest.HangAnswer()}, timed},
	})
	if e.name == "410" && verb != "watch" && verb != "list" {
		e = planned{namedEffect{"500", gopftest.Fail(500)}, counted}
	}
	return action{text: fmt.Sprintf("requests %q %s (%d, %s)", verb, e.name, n, d), do: func(w *world) { w.fault(e.match, e.effect) }}
}
