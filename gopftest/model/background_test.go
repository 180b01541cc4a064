package model_test

import (
	"fmt"
	"strconv"
	"time"

	"gopf.dev/gopf"
)

// event records the call of an event handler.
func (o *oracle) event(p *process, e *gopf.WatchEvent[thing]) {
	if p.isDead() {
		return
	}
	version, _ := strconv.ParseInt(e.Object.GetResourceVersion(), 10, 64)
	uid := string(e.Object.GetUID())
	o.mu.Lock()
	at := fmt.Sprint(p.n)
	if o.events[at] == nil {
		o.events[at] = map[string]seen{}
	}
	last, known := o.events[at][uid]
	if version == 0 {
		version = last.version // a missed deletion
	}
	o.events[at][uid] = seen{max(version, last.version), e.Type, e.Object.GetName(), p.term()}
	o.mu.Unlock()
	o.history.add("  p%d event %q %s v%d missed=%v", p.n, e.Type, e.Object.GetName(), version, e.Missed)
	switch {
	case known && last.kind == "DELETED":
		o.wrong("an event %q of %s came after its deletion", e.Type, e.Object.GetName())
	case known && version < last.version && !o.replays:
		o.wrong("an event of %s has version %d after %d", e.Object.GetName(), version, last.version)
	}
}

// daemon records the start of a daemon. The daemon must call leave at its end.
func (o *oracle) daemon(p *process, h handler, d *gopf.Daemon[thing]) (leave func()) {
	name, at := d.Object.GetName(), daemonKey(p, string(d.Object.GetUID()))
	if p.isDead() {
		return func() {}
	}
	o.history.add("  p%d %s %s v%s begins", p.n, h.id, name, d.Object.GetResourceVersion())
	o.mu.Lock()
	o.daemons[at]++
	n := o.daemons[at]
	o.mu.Unlock()
	if n > 1 && !p.world.election { // a replica that loses the lease does not wait for slow daemons
		o.wrong("%d daemons run for %s", n, name)
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.daemons[at]--
		if !p.isDead() {
			o.history.add("  p%d %s %s ends", p.n, h.id, name)
		}
	}
}

func daemonKey(p *process, uid string) string { return fmt.Sprint(p.n, " ", uid) }

// flushed records a write of a daemon. "" means that the outcome is unknown.
func (o *oracle) flushed(p *process, d *gopf.Daemon[thing], value string) {
	if p.isDead() {
		value = ""
	} else {
		o.history.add("  p%d daemon %s flushed %q", p.n, d.Object.GetName(), value)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushes[string(d.Object.GetUID())] = value
}

// tick records the call of a timer.
func (o *oracle) tick(p *process, t *gopf.Tick[thing]) {
	if p.isDead() {
		return
	}
	o.history.add("  p%d tick %s v%s", p.n, t.Object.GetName(), t.Object.GetResourceVersion())
	o.mu.Lock()
	defer o.mu.Unlock()
	at := daemonKey(p, string(t.Object.GetUID()))
	o.ticks[at] = append(o.ticks[at], time.Now())
}
