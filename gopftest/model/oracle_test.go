package model_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"gopf.dev/gopf"
)

// oracle checks the invariants of an operator. It receives the writes of users and the calls
// of handlers.
type oracle struct {
	history     *history
	declaration declaration

	mu       sync.Mutex
	problems []string
	states   map[string][]state         // what users wrote, by uid
	calls    map[string][]*call         // of handlers of changes, by uid
	running  map[*call]bool             // top-level calls
	versions map[string]int64           // the highest one that handlers of changes saw, by process and uid
	finished map[string]int             // by process, term, uid, id and key
	events   map[string]map[string]seen // the last one of each object, by process and uid
	daemons  map[string]int             // that run, by process and uid
	flushes  map[string]string          // what daemons wrote last, by uid
	ticks    map[string][]time.Time     // of timers, by process and uid
	strict   bool                       // only handlers for resuming may be called
	called   int                        // handlers of changes, in all
	writes   int                        // tried, in all
	abort    func()                     // ends the world early
	aborted  bool
	dropped  map[string]bool // stored ids of handlers that the next version does not have
	strays   map[string]bool // uids and keys that handlers of former objects have written to
	lost     []lostCall      // of killed processes
	unsaved  map[string]int  // the number of calls until the last one, by uid and id, whose outcome was not saved
	replays  bool            // streams have told old events again
}

// state is an object after a user's write.
type state struct {
	text     string
	object   map[string]any
	deleting bool
	guarded  bool // it has the operator's finalizer
}

// seen is an event as a handler saw it.
type seen struct {
	version int64
	kind    string
	name    string
	term    int
}

// call is one call of a change handler.
type call struct {
	number  int
	process *process
	term    int // of the process
	handler handler
	id      string
	top     bool // not a sub-handler
	uid     string
	name    string
	version int64
	reason  gopf.Reason
	retry   int
	key     string
	state   string // what users wrote
	object  map[string]any
	ended   bool
	saves   int  // of the object by the process, when the call ended
	final   bool // it is not to be called again for this change
	err     error
	asked   map[string]string // values by where they are written; "" if unknown
}

func newOracle(h *history, d declaration) *oracle {
	return &oracle{
		history: h, declaration: d, states: map[string][]state{}, calls: map[string][]*call{}, running: map[*call]bool{},
		versions: map[string]int64{}, finished: map[string]int{}, events: map[string]map[string]seen{}, daemons: map[string]int{},
		flushes: map[string]string{}, strays: map[string]bool{}, unsaved: map[string]int{}, ticks: map[string][]time.Time{},
	}
}

// wrong records a violated invariant.
func (o *oracle) wrong(format string, args ...any) {
	text := cutText(fmt.Sprintf(format, args...), 300)
	o.mu.Lock()
	if !slices.Contains(o.problems, text) {
		o.problems = append(o.problems, text)
	}
	o.mu.Unlock()
	o.history.add("!! %s", text)
}

// wasKilled records that a process ended without saving anything more. Calls with unsaved
// outcomes, and those that were running, count as never made, because no process can know
// of them.
func (o *oracle) wasKilled(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	early := o.declaration.storage == "elsewhere" // outcomes are saved before the object is written
	for uid, calls := range o.calls {
		o.calls[uid] = slices.DeleteFunc(slices.Clone(calls), func(k *call) bool {
			unsaved := k.process == p && (!k.ended || k.saves == p.saves(k.name) && !early)
			if unsaved {
				key := uid + " " + k.id
				o.lost = append(o.lost, lostCall{k, uid, o.unsaved[key]})
				o.unsaved[key] = o.called
			}
			return unsaved
		})
	}
}

// strayed is called when a handler wrote through the API by the name of its object, and
// so to another object that has that name now.
func (o *oracle) strayed(uid, key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.strays[uid+" "+key] = true
}

// lostCall is a call that counts as never made.
type lostCall struct {
	*call
	uid     string
	unsaved int // the previous entry in oracle.unsaved
}

// wroteLate records that a write of a killed process still reached the server, because it
// was in flight. The calls whose outcomes it saved were made.
func (o *oracle) wroteLate(p *process, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = slices.DeleteFunc(o.lost, func(l lostCall) bool {
		made := l.process == p && l.name == name && l.ended
		if made {
			o.unsaved[l.uid+" "+l.id] = l.unsaved
			o.calls[l.uid] = append(slices.Clone(o.calls[l.uid]), l.call)
			slices.SortStableFunc(o.calls[l.uid], func(a, b *call) int { return cmp.Compare(a.number, b.number) })
		}
		return made
	})
}

// mostCalls limits the handler calls in one world. Plans need far fewer.
const mostCalls = 1000

// mostWrites limits the writes of the operator in one world.
const mostWrites = 3000

// written records that the operator is about to write.
func (o *oracle) written() {
	o.mu.Lock()
	o.writes++
	endless := o.writes > mostWrites && !o.aborted
	o.aborted = o.aborted || endless
	o.mu.Unlock()
	if endless {
		o.wrong("the operator writes without end")
		o.abort()
	}
}

// begin records the start of a handler call.
func (o *oracle) begin(p *process, h handler, id string, top bool, c *change) *call {
	version, _ := strconv.ParseInt(c.Object.GetResourceVersion(), 10, 64)
	k := &call{
		process: p, term: p.term(), handler: h, id: id, top: top, uid: string(c.Object.GetUID()), name: c.Object.GetName(), version: version,
		reason: c.Reason, retry: c.Retry, key: c.Key(), state: userState(c.Raw()), object: c.Raw(), asked: map[string]string{},
	}
	if p.isDead() {
		return k
	}
	o.history.add("  p%d %s(%s) %s #%d v%d key %s %s", p.n, id, c.Reason, k.name, k.retry, version, k.key[:min(4, len(k.key))], k.state)
	if text := userState(c.Object.Object); text != k.state {
		o.wrong("%s of %s: the object has %s, its raw form has %s", id, k.name, text, k.state)
	}
	o.mu.Lock()
	at := fmt.Sprint(p.n, k.uid)
	back := o.versions[at] > version
	o.versions[at] = max(o.versions[at], version)
	var beside *call
	for other := range o.running {
		if top && other.uid == k.uid && !other.process.isDead() {
			beside = other
		}
	}
	if top {
		o.running[k] = true
	}
	o.called++
	k.number = o.called
	endless := o.called > mostCalls && !o.aborted
	o.aborted = o.aborted || endless
	strict := o.strict && h.on&gopf.Resume == 0 && top
	o.calls[k.uid] = append(o.calls[k.uid], k)
	o.mu.Unlock()
	if endless {
		o.wrong("handlers are called without end")
		o.abort()
	}
	if back {
		o.wrong("%s of %s: version %d is older than one seen before", id, k.name, version)
	}
	if beside != nil {
		o.wrong("%s of %s runs beside %s of process %d", id, k.name, beside.id, beside.process.n)
	}
	if strict {
		o.wrong("%s of %s is called for %s after a restart without any change", id, k.name, c.Reason)
	}
	return k
}

// activity returns a number that grows with each start and end of a call.
func (o *oracle) activity() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return 2*o.called - len(o.running)
}

// end records the end of a handler call.
func (o *oracle) end(k *call, final bool, err error) {
	o.mu.Lock()
	delete(o.running, k)
	o.mu.Unlock()
	if k.process.isDead() {
		return
	}
	o.history.add("  p%d %s(%s) %s ends: final=%v %v", k.process.n, k.id, k.reason, k.name, final, err)
	o.mu.Lock()
	k.ended, k.final, k.err, k.saves = true, final, err, k.process.saves(k.name)
	repeated := false
	if final {
		at := fmt.Sprint(k.process.n, " ", k.term, k.uid, k.id, k.key)
		o.finished[at]++
		repeated = o.finished[at] > 1 && !o.ambiguous(k.uid)
		if k.reason == gopf.Create || k.reason == gopf.Delete {
			at = fmt.Sprint(k.process.n, " ", k.term, k.uid, k.id, k.reason)
			o.finished[at]++
			repeated = repeated || o.finished[at] > 1
		}
	}
	o.mu.Unlock()
	if repeated {
		o.wrong("%s of %s has finished twice for one change (%s, key %s)", k.id, k.name, k.reason, k.key)
	}
}

// asks records the change of a handler. "" means that it is unknown whether it is written.
func (o *oracle) asks(k *call, where, value string) {
	if where == "" {
		where = k.handler.patch
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	k.asked[where] = value
}

// result records the result that a handler stores in the status.
func (o *oracle) result(k *call) []any {
	return []any{digest(k.state), asMap(k.object["spec"])["big"]}
}
