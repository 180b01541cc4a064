package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// kit is a set with its environment: a clock, a server that accepts patches, and the
// turns of objects. It must be used in a synctest bubble.
type kit struct {
	*Set
	start time.Time

	turns   sync.Mutex // one turn at a time, for all objects
	objects map[string]*Object
	last    map[string]*object.Body
	paused  map[string]bool
	due     map[string]handler.Opt[time.Duration] // of the last turn

	mu     sync.Mutex
	lines  []string // "1s DEBUG …"
	woken  []string // "1s name"
	writes []map[string]any
	fail   func() error // result of the next write; nil means success

	reads func(context.Context) (hold handler.Hold, leave func()) // memory for reads; nil means no limit
}

func newKit(t *testing.T, specs ...*Spec) *kit {
	k := &kit{
		start:   time.Now(),
		objects: map[string]*Object{}, last: map[string]*object.Body{}, paused: map[string]bool{}, due: map[string]handler.Opt[time.Duration]{},
	}
	clock := alarm.New((*Task).Ring)
	k.Set = NewSet(Config{
		Specs: specs, Clock: clock, Write: k.write, Wake: k.wake,
		DefaultBackoff: time.Minute, ErrorDelays: []time.Duration{time.Second, 10 * time.Second},
	})
	ctx, cancel := context.WithCancel(context.Background())
	go clock.Run(ctx)
	t.Cleanup(func() {
		exit, done := context.WithTimeout(ctx, time.Minute)
		k.Exit(exit)
		done()
		cancel()
		synctest.Wait()
		if n := clock.Len(); n > 0 {
			t.Errorf("%d clock entries remain", n)
		}
	})
	return k
}

func (k *kit) at() string { return time.Since(k.start).String() }

func (k *kit) write(_ context.Context, body *object.Body, p *patch.Patch, _ bool) (*object.Body, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		if err := k.fail(); err != nil {
			return body, err
		}
	}
	fields := map[string]any{}
	patch.Apply(fields, p.Fields())
	for _, edit := range p.Edits() {
		edit(fields)
	}
	k.writes = append(k.writes, fields)
	return body, nil
}

// wake gives the object a turn without a change.
func (k *kit) wake(name string) {
	k.mu.Lock()
	k.woken = append(k.woken, k.at()+" "+name)
	k.mu.Unlock()
	k.turns.Lock()
	defer k.turns.Unlock()
	k.turn(name, false, false)
}

// sight is the state of an object in an event.
type sight struct {
	labels    map[string]any
	spec      any
	deleting  bool
	paused    bool
	unchanged bool // same as last handled
	unguarded bool
}

// body returns the object of an event.
func (s sight) body(name string) *object.Body {
	metadata := map[string]any{"name": name, "uid": name, "labels": s.labels}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		metadata["namespace"], metadata["name"] = namespace, rest
	}
	if s.deleting {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	body, err := object.FromMap(map[string]any{"metadata": metadata, "spec": s.spec})
	if err != nil {
		panic(err)
	}
	return body
}

// see gives the object a turn for an event.
func (k *kit) see(name string, s sight) handler.Opt[time.Duration] {
	k.turns.Lock()
	defer k.turns.Unlock()
	k.last[name], k.paused[name] = s.body(name), s.paused
	k.turn(name, !s.unchanged, s.unguarded)
	return k.due[name]
}

func (k *kit) turn(name string, changed, unguarded bool) {
	k.objects[name], k.due[name] = k.Sight(k.objects[name], Sighting{
		Request: k.request(k.last[name]), Changed: changed, Unguarded: unguarded, Paused: k.paused[name], Again: k.request,
	})
}

func (k *kit) request(body *object.Body) *handler.Request {
	return &handler.Request{Body: body, Key: body.Key, Log: slog.New(k), Room: k.reads}
}

// running and over return the ids of the tasks of an object, joined.
func (k *kit) running(name string) string {
	ids, _ := k.object(name).IDs()
	return strings.Join(ids, " ")
}

func (k *kit) over(name string) string {
	_, ids := k.object(name).IDs()
	return strings.Join(ids, " ")
}

// object returns the state of an object after all turns.
func (k *kit) object(name string) *Object {
	synctest.Wait()
	k.turns.Lock()
	defer k.turns.Unlock()
	return k.objects[name]
}

// wakes returns the times at which objects were woken so far.
func (k *kit) wakes() []string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.woken
}

// said returns the log lines since the last call, without those of attempts.
func (k *kit) said() (lines []string) {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.lines {
		if !strings.HasSuffix(l, "is invoked.") && !strings.HasSuffix(l, "succeeded.") {
			lines = append(lines, l)
		}
	}
	k.lines = nil
	return lines
}

func (k *kit) sent() []map[string]any {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	sent := k.writes
	k.writes = nil
	return sent
}

func (k *kit) failing(fail func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = fail
}

func (k *kit) Enabled(context.Context, slog.Level) bool { return true }
func (k *kit) WithAttrs([]slog.Attr) slog.Handler       { return k }
func (k *kit) WithGroup(string) slog.Handler            { return k }
func (k *kit) Handle(_ context.Context, r slog.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, fmt.Sprintf("%s %s %s", k.at(), r.Level, r.Message))
	return nil
}

// journal records events with their time.
type journal struct {
	start time.Time
	mu    sync.Mutex
	notes []string
}

func newJournal() *journal { return &journal{start: time.Now()} }

func (j *journal) note(what any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes = append(j.notes, fmt.Sprintf("%s %v", time.Since(j.start), what))
}

// read returns the entries since the last call.
func (j *journal) read() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	notes := j.notes
	j.notes = nil
	return notes
}

type option func(*Spec)

func daemonOf(call func(context.Context, *Call) error, options ...option) *Spec {
	s := &Spec{Handler: &handler.Handler{ID: "fn", Mandatory: true}, Call: call}
	for _, o := range options {
		o(s)
	}
	return s
}

func timerOf(interval time.Duration, call func(context.Context, *Call) error, options ...option) *Spec {
	s := daemonOf(call, options...)
	s.Timer, s.Interval = true, interval
	return s
}

func named(id string) option         { return func(s *Spec) { s.ID = id } }
func grace(d time.Duration) option   { return func(s *Spec) { s.StopGrace = d } }
func timeout(d time.Duration) option { return func(s *Spec) { s.StopTimeout = handler.Some(d) } }
func idle(d time.Duration) option    { return func(s *Spec) { s.Idle = d } }
func backoff(d time.Duration) option { return func(s *Spec) { s.Limits.Backoff = handler.Some(d) } }
func optional(s *Spec)               { s.Mandatory = false }
func labelled(key string, want any) option {
	return func(s *Spec) {
		s.Criteria.Labels = append(s.Criteria.Labels, handler.Key{Name: key, Match: handler.Equal(want)})
	}
}

// obedient is a daemon that does nothing until it is asked to stop.
func obedient(ctx context.Context, _ *Call) error {
	<-ctx.Done()
	return ctx.Err()
}

// stubborn is a daemon that runs until the test releases it.
func stubborn(release <-chan struct{}) func(context.Context, *Call) error {
	return func(context.Context, *Call) error { <-release; return nil }
}

// hanging is a server that does not respond.
func hanging(ctx context.Context, body *object.Body, _ *patch.Patch, _ bool) (*object.Body, error) {
	<-ctx.Done()
	return body, context.Cause(ctx)
}
