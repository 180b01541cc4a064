package vectors_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
)

// cycle is one step of a transcript: an event, and what Kopf did about it.
type cycle struct {
	At    float64
	Event struct {
		Type   *string
		Object map[string]any
	}
	Requests []struct {
		At          float64
		ContentType string `json:"content_type"`
		Payload     any
		Response    int
	}
	Logs [][2]string
}

// moment is the object after a step, with when it was so.
type moment struct {
	at     float64
	object map[string]any
}

// call is a call of a handler.
type call struct {
	at float64
	id string
}

// transcript is what happened in a case, as far as it counts.
type transcript struct {
	states []moment
	calls  []call
	logs   [][2]string // of the level INFO and above, up to the first colon
}

func cycles(t *testing.T, v vector) {
	c := decode[struct {
		Name              string
		StatusSubresource bool `json:"status_subresource"`
		Cycles            []cycle
	}](t, v.JSON)
	script, known := scripts[c.Name]
	if !known {
		t.Fatal("there is no script for this case")
	}
	want := expected(t, c.Cycles)
	if script.differs != nil {
		script.differs(c.Cycles, &want)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		cluster := newStage(t, script, c.StatusSubresource)
		got := cluster.play(c.Cycles, len(want.states), script.endless)
		compare(t, want, got)
	})
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// expected reads a transcript of Kopf. A touch counts for nothing: it is how
// Kopf wakes itself. So does a patch that changes nothing.
func expected(t *testing.T, cycles []cycle) (want transcript) {
	for _, c := range cycles {
		before := settled(c.Event.Object)
		after := jsonvalue.Clone(c.Event.Object).(map[string]any)
		at := c.At
		for _, r := range c.Requests {
			if r.Response != 200 {
				continue
			}
			at = r.At
			if fields, ok := r.Payload.(map[string]any); ok {
				patch.Apply(after, fields)
			} else {
				body, err := object.FromMap(after)
				if err != nil {
					t.Fatal(err)
				}
				ops, _ := r.Payload.([]any)
				after = patched(t, body, ops[1:])
			}
		}
		keepBase(after, c.Event.Object)
		if s := settled(after); !diff.Equal(before, s) {
			want.states = append(want.states, moment{at, s})
		}
		for _, line := range c.Logs {
			want.note(line, c.At)
		}
	}
	return want
}

// keepBase takes back that Kopf saves a base for an object that is being deleted: we
// do not, by rule 16, so that no deletion depends on being able to save.
func keepBase(after, before map[string]any) {
	metadata := stringMap(after["metadata"])
	if metadata["deletionTimestamp"] == nil {
		return
	}
	const key = "kopf.zalando.org/last-handled-configuration"
	old, had := stringMap(stringMap(before["metadata"])["annotations"])[key]
	if annotations := stringMap(metadata["annotations"]); had {
		annotations[key] = old
	} else {
		delete(annotations, key)
	}
}

func (tr *transcript) note(line [2]string, at float64) {
	if id, ok := strings.CutSuffix(strings.TrimPrefix(line[1], "Handler '"), "' is invoked."); ok {
		tr.calls = append(tr.calls, call{at, id})
	} else if line[0] != "DEBUG" {
		words, _, _ := strings.Cut(line[1], ":")
		tr.logs = append(tr.logs, [2]string{line[0], words})
	}
}

// settled is an object without what differs between implementations by nature:
// versions, the touches of Kopf, notes of our own, maps that are empty. Records
// have the length of their delay, by rule 39, which Kopf ignores. By rule 16 no
// base is saved of an object that is being deleted; Kopf saves one.
func settled(fields map[string]any) map[string]any {
	s := jsonvalue.Clone(fields).(map[string]any)
	metadata := stringMap(s["metadata"])
	delete(metadata, "resourceVersion")
	annotations := stringMap(metadata["annotations"])
	for key, v := range annotations {
		var parsed any
		if text, ok := v.(string); ok && json.Unmarshal([]byte(text), &parsed) == nil {
			annotations[key] = parsed // the order of keys does not count
			delete(stringMap(parsed), "delay")
		}
		if strings.HasSuffix(key, "/touch-dummy") || strings.HasSuffix(key, "/gopf.handling") || strings.HasSuffix(key, "/gopf.bound") {
			delete(annotations, key)
		}
		if strings.HasSuffix(key, "/last-handled-configuration") && metadata["deletionTimestamp"] != nil {
			delete(annotations, key)
		}
	}
	// Progress may be kept in the status, too.
	if progress := stringMap(stringMap(stringMap(s["status"])["kopf"])["progress"]); progress != nil {
		delete(progress, "gopf.handling")
		for _, record := range progress {
			delete(stringMap(record), "delay")
		}
	}
	return prune(s)
}

func prune(fields map[string]any) map[string]any {
	for key, v := range fields {
		if m, ok := v.(map[string]any); ok && len(prune(m)) == 0 {
			delete(fields, key)
		}
	}
	return fields
}

func compare(t *testing.T, want, got transcript) {
	t.Helper()
	if !slices.Equal(want.calls, got.calls) {
		t.Errorf("calls: got %v, want %v", got.calls, want.calls)
	}
	if !slices.Equal(want.logs, got.logs) {
		t.Errorf("log lines:\ngot  %q\nwant %q", got.logs, want.logs)
	}
	// We may take several requests for what is one state in the transcript, so
	// its states are to be found among ours, and the last ones are the same.
	i := 0
	for _, state := range got.states {
		if i < len(want.states) && state.at == want.states[i].at && diff.Equal(state.object, want.states[i].object) {
			i++
		}
	}
	if i < len(want.states) || len(got.states) > 0 && !diff.Equal(got.states[len(got.states)-1].object, want.states[len(want.states)-1].object) {
		t.Errorf("states: found %d of %d;\ngot  %s\nwant %s", i, len(want.states), show(got.states), show(want.states))
	}
}

func show(states []moment) string {
	var b strings.Builder
	for _, s := range states {
		raw, _ := json.Marshal(s.object)
		b.WriteString("\n  ")
		b.WriteString(time.Duration(s.at*float64(time.Second)).String() + " " + string(raw))
	}
	return b.String()
}

// stage is the production code of turns on a cluster of one object.
type stage struct {
	*fakeAPI
	kind   *process.Processor
	memory *process.Memory
	alarm  time.Time
	stop   chan struct{}
	over   bool // the operator was stopped
}

func newStage(t *testing.T, s script, statusSubresource bool) *stage {
	st := &stage{stop: make(chan struct{})}
	st.fakeAPI = &fakeAPI{t: t, stopped: func() { st.over = true; close(st.stop) }}
	info := kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true}
	if statusSubresource {
		info.Subresources = []string{"status"}
	}
	st.kind = &process.Processor{
		Resource: info, Handlers: s.handlers, Watchers: s.watchers, Fields: s.handlers.Fields(), Config: s.config(), API: st.fakeAPI,
		Log:      slog.New(&clockedLog{recorded: &st.recorded}),
		Alarm:    func(_ string, at time.Time) { st.alarm = at },
		Stopping: st.stop,
		Post:     func(recorder.Event) {},
	}
	return st
}

// play gives the object the turns that the events of the transcript make for:
// those that did not come from Kopf's own patches.
func (s *stage) play(cycles []cycle, states int, endless bool) transcript {
	if endless {
		s.limit = states
	}
	end := 0.0
	var last map[string]any
	for i, c := range cycles {
		for _, r := range c.Requests {
			end = max(end, r.At)
		}
		end = max(end, c.At)
		s.wait(c.At)
		own := last != nil && diff.Equal(settled(c.Event.Object), last)
		last = s.afterwards(c)
		if own && !deleted(c) && len(s.kind.Watchers) == 0 { // only event handlers are told of our own changes
			continue
		}
		s.object = jsonvalue.Clone(c.Event.Object).(map[string]any)
		body, err := object.FromMap(jsonvalue.Clone(c.Event.Object).(map[string]any))
		if err != nil {
			s.t.Fatal(err)
		}
		if conflicting(c) { // somebody else was faster
			s.object = jsonvalue.Clone(cycles[i+1].Event.Object).(map[string]any)
		}
		s.turn(&process.Event{Body: body, Type: kube.EventType(eventType(c))})
	}
	s.wait(end)
	return s.recorded
}

func deleted(c cycle) bool { return c.Event.Type != nil && *c.Event.Type == "DELETED" }

func eventType(c cycle) string {
	if c.Event.Type == nil {
		return ""
	}
	return *c.Event.Type
}

func conflicting(c cycle) bool { return len(c.Requests) > 0 && c.Requests[0].Response == 422 }

// afterwards is the object as Kopf has left it.
func (s *stage) afterwards(c cycle) map[string]any {
	after := expected(s.t, []cycle{c}).states
	if len(after) == 0 {
		return settled(c.Event.Object)
	}
	return after[len(after)-1].object
}

// wait lets the time come, and gives the turns that are due until then.
func (s *stage) wait(at float64) {
	until := epoch.Add(time.Duration(at * float64(time.Second)))
	for !s.over && !s.alarm.IsZero() && !s.alarm.After(until) {
		time.Sleep(time.Until(s.alarm))
		s.alarm = time.Time{}
		s.turn(nil)
	}
	time.Sleep(time.Until(until))
}

func (s *stage) turn(e *process.Event) {
	if s.memory == nil {
		s.memory = process.NewMemory(e)
	}
	s.kind.Turn(context.Background(), s.memory, process.Occasion{Event: e, Alarm: e == nil})
}

// clockedLog notes log lines with their times.
type clockedLog struct{ recorded *transcript }

func (l *clockedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *clockedLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *clockedLog) WithGroup(string) slog.Handler            { return l }
func (l *clockedLog) Handle(ctx context.Context, r slog.Record) error {
	one := &attemptLines{}
	_ = one.Handle(ctx, r)
	l.recorded.note(one.lines[0], time.Since(epoch).Seconds())
	return nil
}
