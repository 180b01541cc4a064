package progress

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/storage"
)

// of returns a record with the purpose.
func of(reason cause.Reason, started int) storage.Record {
	return storage.Record{Purpose: string(reason), Started: second(started)}
}

func succeededAt(r storage.Record, n int) storage.Record {
	r.Success, r.Stopped, r.Retries = true, second(n), 1
	return r
}

func TestHandlersOfAnotherReasonStartOver(t *testing.T) {
	s := New(map[string]storage.Record{
		"same": succeededAt(of(cause.Create, 1), 2), "other": succeededAt(of(cause.Update, 1), 2),
		"any": {Retries: 3}, "started": {Retries: 3, Started: second(1)},
	})
	s.Select([]string{"same", "other", "any", "started", "new"}, cause.Create, second(9))
	want := map[string]storage.Record{
		"same": succeededAt(of(cause.Create, 1), 2), "other": of(cause.Create, 9),
		"any": {Retries: 3, Started: second(9)}, "started": {Retries: 3, Started: second(1)}, "new": of(cause.Create, 9),
	}
	if got := s.Records(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var changed []string
	for id := range s.Changed() {
		changed = append(changed, id)
	}
	if slices.Sort(changed); !slices.Equal(changed, []string{"any", "new", "other"}) {
		t.Errorf("changed: got %q", changed)
	}
	if got := s.Recorded(cause.Create); !slices.Equal(got, []string{"new", "other", "same"}) {
		t.Errorf("recorded: got %q", got)
	}
	if got := s.Started(cause.Create); !got.Equal(second(1)) {
		t.Errorf("started: got %v", got)
	}
	if got := s.Started(cause.Delete); !got.IsZero() {
		t.Errorf("started for a reason that no handler has: got %v", got)
	}
}

func TestAnAttemptIsRecorded(t *testing.T) {
	cases := map[string]struct {
		attempt Attempt
		want    storage.Record
	}{
		"success":           {Attempt{Final: true}, storage.Record{Success: true, Stopped: second(5)}},
		"failure":           {Attempt{Final: true, Failed: true, Message: "m"}, storage.Record{Failure: true, Stopped: second(5), Message: new("m")}},
		"delayed":           {Attempt{Failed: true, Message: "m", Delay: handler.Some(3 * time.Second)}, storage.Record{Delayed: second(8), Delay: 3 * time.Second, Message: new("m")}},
		"again at once":     {Attempt{Failed: true}, storage.Record{Message: new("")}},
		"with sub-handlers": {Attempt{Final: true, Subs: []string{"h/b", "h/a", "h/b"}}, storage.Record{Success: true, Stopped: second(5), Subrefs: []string{"h/a", "h/b", "h/old"}}},
		"after waiting":     {Attempt{Final: true, Waited: 2 * time.Second}, storage.Record{Success: true, Stopped: second(5), Started: second(3)}},
	}
	for name, c := range cases {
		before := of(cause.Create, 1)
		before.Delayed, before.Delay, before.Retries, before.Message = second(4), time.Second, 1, new("before")
		if len(c.attempt.Subs) > 0 {
			before.Subrefs = []string{"h/old"}
		}
		s := New(map[string]storage.Record{"h": before})
		s.Attempted("h", c.attempt, second(5))
		c.want.Purpose, c.want.Retries = string(cause.Create), 2
		if c.want.Started.IsZero() {
			c.want.Started = second(1)
		}
		if got := s.Record("h"); !got.Equal(c.want) || got.Delay != c.want.Delay {
			t.Errorf("%s: got %s, want %s", name, got.Encode(true), c.want.Encode(true))
		}
	}
}

func TestDueSkipsFinishedDelayedAndPostponedHandlers(t *testing.T) {
	now := second(10)
	s := New(map[string]storage.Record{"done": succeededAt(of(cause.Create, 1), 2)})
	all := []string{"done", "due", "delayed", "postponed"}
	s.Select(all, cause.Create, now)
	s.Attempted("delayed", Attempt{Failed: true, Delay: handler.Some(4 * time.Second)}, now)
	s.Postpone("postponed", second(12))
	s.PostponeAll(map[string]time.Time{"unknown": second(99)})
	for _, c := range []struct {
		at    int
		ids   []string
		due   []string
		delay handler.Opt[time.Duration]
	}{
		{10, all, []string{"due"}, handler.Some(time.Duration(0))},
		{10, all[2:], nil, handler.Some(2 * time.Second)},
		{12, all[2:], []string{"postponed"}, handler.Some(time.Duration(0))},
		{12, all[2:3], nil, handler.Some(2 * time.Second)},
		{14, all, []string{"due", "delayed", "postponed"}, handler.Some(time.Duration(0))},
		{10, all[:1], nil, handler.Opt[time.Duration]{}},
	} {
		if got := s.Due(c.ids, second(c.at)); !slices.Equal(got, c.due) {
			t.Errorf("%q at %d: due are %q, want %q", c.ids, c.at, got, c.due)
		}
		if got := s.Delay(c.ids, second(c.at)); got != c.delay {
			t.Errorf("%q at %d: the delay is %v, want %v", c.ids, c.at, got, c.delay)
		}
	}
	if got := s.Postponed(second(11)); len(got) != 1 || !got["postponed"].Equal(second(12)) {
		t.Errorf("postponed: got %v", got)
	}
	if got := s.Postponed(second(12)); got != nil {
		t.Errorf("postponed until now: got %v", got)
	}
	if !s.Done(all[:1]) || s.Done(all) {
		t.Error("Done is wrong: the first handler is done, but not all are")
	}
	s.Hasten(all, now)
	if got := s.Due(all, now); !slices.Equal(got, all[1:]) {
		t.Errorf("hastened: due are %q", got)
	}
	if r := s.Record("delayed"); r.Delay != 0 || !r.Delayed.IsZero() || s.Postponed(now) != nil {
		t.Errorf("hastened: a delay is left in %+v, or in %v", r, s.Postponed(now))
	}
	if !s.Record("done").Success {
		t.Error("a finished handler was hastened")
	}
}

func TestSupersededCountsHandlingsOfOtherReasons(t *testing.T) {
	failed := of(cause.Update, 1)
	failed.Failure, failed.Subrefs = true, []string{"f/sub"}
	s := New(map[string]storage.Record{
		"s": succeededAt(of(cause.Update, 1), 2), "f": failed, "l": of(cause.Update, 1), "c": of(cause.Create, 1), "any": {},
	})
	counts, ids := s.Superseded(cause.Create)
	if want := map[cause.Reason]Counts{cause.Update: {1, 1, 1}}; !reflect.DeepEqual(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	if !slices.Equal(ids, []string{"f", "f/sub", "l", "s"}) {
		t.Errorf("got %q", ids)
	}
	if got := s.Counts(cause.Create); got != (Counts{Left: 2}) {
		t.Errorf("got %+v", got)
	}
	if got := s.Counts(cause.Update); got != (Counts{1, 1, 2}) {
		t.Errorf("got %+v", got)
	}
	if got := s.IDs(); !slices.Equal(got, []string{"any", "c", "f", "f/sub", "l", "s"}) {
		t.Errorf("got %q", got)
	}
	if got := s.Subs([]string{"f", "l"}); !slices.Equal(got, []string{"f/sub"}) {
		t.Errorf("got %q", got)
	}
}

func TestARecordOfAFormerIDIsTakenOver(t *testing.T) {
	old, own := of(cause.Create, 1), of(cause.Create, 2)
	s := New(map[string]storage.Record{"old": old, "own": own})
	s.Rename("old", "new")
	s.Rename("old", "own")
	s.Rename("nothing", "other")
	if !s.Record("new").Equal(old) || !s.Record("own").Equal(own) || slices.Contains(s.IDs(), "other") {
		t.Errorf("got %+v", s.Records())
	}
	if _, changed := s.Changed()["new"]; !changed {
		t.Error("the record is not stored under its new id")
	}
	s.Add(map[string]storage.Record{"own": old, "late": old})
	if !s.Record("own").Equal(own) || !s.Record("late").Equal(old) {
		t.Errorf("got %+v", s.Records())
	}
}

func TestCloneIsIndependent(t *testing.T) {
	s := New(map[string]storage.Record{"h": of(cause.Create, 1)})
	s.Attempted("h", Attempt{Failed: true, Delay: handler.Some(5 * time.Second)}, second(1))
	before := s.Record("h")
	c := s.Clone()
	if got := c.Due([]string{"h"}, second(3)); got != nil {
		t.Errorf("the copy lost a delay: due are %q", got)
	}
	c.Attempted("h", Attempt{Failed: true, Delay: handler.Some(time.Second)}, second(6))
	if got := s.Record("h"); !got.Equal(before) || c.Record("h").Retries != 2 {
		t.Errorf("got %+v and %+v", got, c.Record("h"))
	}
	c.Postpone("h", second(99))
	c.Restore("h", before)
	if !c.Record("h").Equal(before) || c.Postponed(second(1)) != nil {
		t.Errorf("not restored: %+v", c.Record("h"))
	}
}
