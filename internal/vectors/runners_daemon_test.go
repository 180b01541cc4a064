package vectors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/process"
)

// companion is the production code of daemons and timers with one of them for
// one object. Its times are in seconds since a moment of its own.
type companion struct {
	t       *testing.T
	start   time.Time
	set     *daemon.Set
	object  *daemon.Object
	version int
	woken   chan struct{}

	mu   sync.Mutex
	logs [][2]string
}

// backgroundOptions are those of Kopf's decorators for daemons and timers.
type backgroundOptions struct {
	Interval, Idle                    float64
	Sharp                             bool
	InitialDelay                      float64 `json:"initial_delay"`
	Timeout, Retries, Backoff, Errors any
	CancellationBackoff               float64  `json:"cancellation_backoff"`
	CancellationTimeout               *float64 `json:"cancellation_timeout"`
	CancellationPolling               float64  `json:"cancellation_polling"`
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// newCompanion runs until the test ends.
func newCompanion(t *testing.T, kind string, o backgroundOptions, call func(context.Context, *daemon.Call) error) *companion {
	c := &companion{t: t, start: time.Now(), woken: make(chan struct{}, 1)}
	spec := &daemon.Spec{
		Handler: &handler.Handler{ID: "fn", Mandatory: true, Limits: limitsOf(o.Timeout, o.Retries, o.Backoff, o.Errors)},
		Call:    call,
		Timer:   kind == "timer", Interval: inSeconds(o.Interval), Sharp: o.Sharp, Idle: inSeconds(o.Idle),
		InitialDelay: func(*handler.Request) time.Duration { return inSeconds(o.InitialDelay) },
		StopGrace:    inSeconds(o.CancellationBackoff), Polling: inSeconds(o.CancellationPolling),
	}
	if o.CancellationTimeout != nil {
		spec.StopTimeout = handler.Some(inSeconds(*o.CancellationTimeout))
	}
	clock := alarm.New((*daemon.Task).Ring)
	c.set = daemon.NewSet(daemon.Config{
		Specs: []*daemon.Spec{spec}, Clock: clock,
		Write: func(_ context.Context, b *object.Body, _ *patch.Patch, _ bool) (*object.Body, error) { return b, nil },
		Wake: func(string) {
			select {
			case c.woken <- struct{}{}:
			default:
			}
		},
		DefaultBackoff: time.Minute, Polling: time.Minute,
	})
	ctx, cancel := context.WithCancel(context.Background())
	go clock.Run(ctx)
	t.Cleanup(func() {
		exit, done := context.WithTimeout(ctx, time.Hour)
		c.set.Exit(exit)
		done()
		cancel()
	})
	return c
}

func (c *companion) now() float64 { return time.Since(c.start).Seconds() }

func (c *companion) sleepUntil(at float64) { time.Sleep(time.Until(c.start.Add(inSeconds(at)))) }

// see is the observation of a new state of the object.
func (c *companion) see(deleting, changed bool) (due handler.Opt[time.Duration]) {
	c.version++
	metadata := map[string]any{"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": fmt.Sprint(c.version)}
	if deleting {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:05Z"
	}
	body, err := object.FromMap(map[string]any{"metadata": metadata})
	if err != nil {
		c.t.Fatal(err)
	}
	again := func(b *object.Body) *handler.Request { return &handler.Request{Body: b, Log: slog.New(c)} }
	c.object, due = c.set.Sight(c.object, daemon.Sighting{Request: again(body), Changed: changed, Again: again})
	return due
}

func (c *companion) Enabled(context.Context, slog.Level) bool { return true }
func (c *companion) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *companion) WithGroup(string) slog.Handler            { return c }
func (c *companion) Handle(ctx context.Context, r slog.Record) error {
	one := &attemptLines{}
	_ = one.Handle(ctx, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs = append(c.logs, one.lines...)
	return nil
}

var nearly = cmpopts.EquateApprox(0, 1e-6)

// schedule plays a case of timers or daemons: when they are called, and which
// attempt each call is.
func schedule(t *testing.T, v vector) {
	c := decode[struct {
		Kind          string
		Options       backgroundOptions
		HandlerTakes  float64 `json:"handler_takes"`
		Outcomes      []json.RawMessage
		Handled       bool      `json:"has_changing_handlers"`
		Changes       []float64 `json:"essential_changes_at"`
		Others        []float64 `json:"other_events_at"`
		ObservedUntil float64   `json:"observed_until"`
		Calls         [][2]float64
		Running       []string
		Over          []string `json:"forever_stopped"`
	}](t, v.JSON)

	synctest.Test(t, func(t *testing.T) {
		var op *companion
		var calls [][2]float64
		op = newCompanion(t, c.Kind, c.Options, func(_ context.Context, call *daemon.Call) error {
			n := len(calls)
			calls = append(calls, [2]float64{op.now(), float64(call.Retry)})
			time.Sleep(inSeconds(c.HandlerTakes))
			if n >= len(c.Outcomes) || string(c.Outcomes[n]) == `"ok"` {
				return nil
			}
			outcome := decode[raised](t, c.Outcomes[n])
			return outcome.err()
		})
		op.see(false, true)
		for _, at := range slices.Sorted(slices.Values(slices.Concat(c.Changes, c.Others))) {
			op.sleepUntil(at)
			// Without handlers of changes there is no last-handled configuration,
			// so that whatever happens is a change.
			op.see(false, !c.Handled || slices.Contains(c.Changes, at))
		}
		// What is due at the very end is not observed.
		time.Sleep(time.Until(op.start.Add(inSeconds(c.ObservedUntil))) - 1)
		synctest.Wait()
		if diff := cmp.Diff(c.Calls, calls, nearly); diff != "" {
			t.Errorf("calls: -want +got\n%s", diff)
		}
		running, over := op.object.IDs()
		if diff := cmp.Diff([][]string{c.Running, c.Over}, [][]string{running, over}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("running and forever stopped: -want +got\n%s", diff)
		}
	})
}

// stopCase is a case of the stopping of daemons.
type stopCase struct {
	Kind    string
	Options backgroundOptions
	Handler struct {
		ExitsAfterSignal *float64 `json:"exits_after_signal"`
		ExitsAfterCancel *float64 `json:"exits_after_cancel"`
	}
	HandlerLog [][2]any `json:"handler_log"`
	Cycles     []struct {
		CycleAt  float64 `json:"cycle_at"`
		Requests []struct {
			At      float64
			Payload any
		}
		Logs [][2]string
	}
}

// daemonStopping plays the deletion of an object with a daemon, which happens at
// the time 0.
func daemonStopping(t *testing.T, v vector) {
	c := decode[stopCase](t, v.JSON)
	end := c.Cycles[len(c.Cycles)-1].CycleAt
	synctest.Test(t, func(t *testing.T) {
		var op *companion
		var heard [][2]any
		never := make(chan struct{})
		op = newCompanion(t, c.Kind, c.Options, func(ctx context.Context, call *daemon.Call) error {
			if after := c.Handler.ExitsAfterSignal; after != nil {
				<-call.Stopping()
				heard = append(heard, [2]any{op.now(), "signalled"})
				time.Sleep(inSeconds(*after))
				return nil
			}
			<-ctx.Done()
			heard = append(heard, [2]any{op.now(), "cancelled"})
			if after := c.Handler.ExitsAfterCancel; after != nil {
				time.Sleep(inSeconds(*after))
				return nil
			}
			<-never
			return nil
		})
		t.Cleanup(func() { close(never) })
		cluster := op.guarded()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		op.start, op.logs = time.Now(), nil

		released, ever := op.release(cluster, end)
		wantReleased, wantEver := c.released()
		if ever != wantEver || cmp.Diff(wantReleased, released, nearly) != "" {
			t.Errorf("the finalizer is removed at %v (%v), want %v (%v)", released, ever, wantReleased, wantEver)
		}
		if diff := cmp.Diff(c.heard(), heard, nearly); diff != "" {
			t.Errorf("what the handler hears: -want +got\n%s", diff)
		}
		if diff := cmp.Diff(c.lines(), op.about(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("log lines: -want +got\n%s", diff)
		}
	})
}

// guarded begins to serve an object that has the finalizer.
func (c *companion) guarded() *stage {
	st := newStage(c.t, script{}, false)
	st.kind.Daemons, st.kind.Log = c.set, slog.New(c)
	st.object = map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "100", "finalizers": []any{st.kind.Config.Finalizer}},
	}
	st.see("ADDED")
	return st
}

// see gives the object a turn for an event with its present state.
func (s *stage) see(event string) {
	body, err := object.FromMap(jsonvalue.Clone(s.object).(map[string]any))
	if err != nil {
		s.t.Fatal(err)
	}
	s.turn(&process.Event{Body: body, Type: kube.EventType(event)})
}

// release deletes the object, and gives it its turns until nothing holds it anymore.
func (c *companion) release(st *stage, end float64) (at float64, ever bool) {
	metadata := stringMap(st.object["metadata"])
	metadata["deletionTimestamp"], metadata["resourceVersion"] = "2026-01-01T00:00:05Z", "101"
	deadline := time.After(time.Until(c.start.Add(inSeconds(end) + time.Second)))
	st.see("MODIFIED")
	for {
		synctest.Wait()
		if stringMap(st.object["metadata"])["finalizers"] == nil {
			return c.now(), true
		}
		var alarm <-chan time.Time
		if !st.alarm.IsZero() {
			alarm = time.After(time.Until(st.alarm))
		}
		select {
		case <-c.woken:
		case <-alarm:
			st.alarm = time.Time{}
		case <-deadline:
			return 0, false
		}
		st.turn(nil)
	}
}

// about are the lines about the daemon and the finalizer, up to the first colon.
func (c *companion) about() (lines [][2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.logs {
		if words, _, _ := strings.Cut(l[1], ":"); strings.HasPrefix(words, "Daemon '") || strings.HasPrefix(words, "Removing the finalizer") {
			lines = append(lines, [2]string{l[0], words})
		}
	}
	// A daemon logs its end in its own goroutine, or after its lock is released. The turn may
	// notice the end before that.
	for i := 1; i < len(lines); i++ {
		if strings.HasPrefix(lines[i][1], "Daemon '") && strings.HasPrefix(lines[i-1][1], "Removing the finalizer") {
			lines[i-1], lines[i] = lines[i], lines[i-1]
		}
	}
	return lines
}

// released tells when Kopf removes the finalizer, or could have if it had not
// waited for its next poll: our daemons wake their objects (rule 22).
func (c stopCase) released() (at float64, ever bool) {
	last := c.Cycles[len(c.Cycles)-1]
	if !slices.ContainsFunc(last.Logs, func(l [2]string) bool { return strings.HasPrefix(l[1], "Removing the finalizer") }) {
		return 0, false
	}
	switch {
	case c.Handler.ExitsAfterSignal != nil:
		return *c.Handler.ExitsAfterSignal, true
	case c.Handler.ExitsAfterCancel != nil:
		return c.Options.CancellationBackoff + *c.Handler.ExitsAfterCancel, true
	}
	return last.CycleAt, true
}

// heard is what the handler hears from Kopf. Without a timeout, Kopf does not
// cancel at all, but for the end of the test; we do, after the grace (rule 22).
func (c stopCase) heard() [][2]any {
	var heard [][2]any
	for _, h := range c.HandlerLog {
		at, _ := h[0].(json.Number).Float64()
		if h[1] == "cancelled" && c.Options.CancellationTimeout == nil {
			at = c.Options.CancellationBackoff
		}
		heard = append(heard, [2]any{at, h[1]})
	}
	return heard
}

// lines are Kopf's log lines about the daemon and the finalizer; how it patches
// and waits is its own. Ours also tells when it cancels where Kopf does not
// (rule 22).
func (c stopCase) lines() (lines [][2]string) {
	forced := [2]string{"DEBUG", "Daemon 'fn' is signalled to exit by force."}
	if o := c.Options; o.CancellationTimeout != nil && o.CancellationBackoff == 0 && c.Handler.ExitsAfterSignal != nil {
		lines = append(lines, forced)
	}
	for _, cycle := range c.Cycles {
		for _, l := range cycle.Logs {
			words, _, _ := strings.Cut(l[1], ":")
			switch {
			case strings.HasPrefix(words, "Sleeping"), strings.Contains(words, "atching"):
				continue
			case strings.Contains(words, "still exiting") && c.Options.CancellationBackoff > 0 && cycle.CycleAt == c.Options.CancellationBackoff:
				lines = append(lines, forced)
			}
			lines = append(lines, [2]string{l[0], words})
		}
	}
	// A daemon logs its end in its own goroutine, or after its lock is released. The turn may
	// notice the end before that.
	for i := 1; i < len(lines); i++ {
		if strings.HasPrefix(lines[i][1], "Daemon '") && strings.HasPrefix(lines[i-1][1], "Removing the finalizer") {
			lines[i-1], lines[i] = lines[i], lines[i-1]
		}
	}
	return lines
}
