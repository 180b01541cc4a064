package index

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

func TestOutcomesDetermineTheValues(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start.Add(time.Minute)
	failed := Failure{Started: start, Retries: 2, Due: start.Add(time.Second)}
	misfit := execute.Outcome{Void: true, Err: &handler.UndecodableError{Err: errors.New("oops")}, Delay: handler.Some(time.Minute)}
	cases := map[string]struct {
		before  Failure
		outcome execute.Outcome
		mode    handler.ErrorMode
		verdict Verdict
		after   Failure
	}{
		"result": {
			before: failed, outcome: execute.Outcome{Final: true, Result: map[string]string{}},
			verdict: Replaced,
		},
		"no result, or an ignored error": {
			before: failed, outcome: execute.Outcome{Final: true},
			verdict: Preserved,
		},
		"the first error with a delay": {
			before:  Failure{Started: now},
			outcome: execute.Outcome{Err: errors.New("oops"), Delay: handler.Some(time.Hour)},
			verdict: Removed, after: Failure{Started: now, Retries: 1, Due: now.Add(time.Hour)},
		},
		"another error, retried at once": {
			before: failed, outcome: execute.Outcome{Err: errors.New("oops")},
			verdict: Removed, after: Failure{Started: start, Retries: 3, Due: now},
		},
		"a final error": {
			before: failed, outcome: execute.Outcome{Final: true, Err: errors.New("oops")},
			verdict: Removed, after: Failure{Started: start, Retries: 3, Due: now, Final: true},
		},
		"undecodable object, errors ignored": {
			before: failed, outcome: misfit, mode: handler.Ignore,
			verdict: Preserved, after: failed,
		},
		"undecodable object, errors not ignored": {
			before: failed, outcome: misfit, mode: handler.Retry,
			verdict: Removed, after: failed,
		},
		"interrupted by shutdown": {
			before: failed, outcome: execute.Outcome{Void: true, Err: errors.New("oops")}, mode: handler.Retry,
			verdict: Preserved, after: failed,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdict, after := c.before.After(c.outcome, c.mode, now)
			if verdict != c.verdict {
				t.Errorf("the values were %s, want %s", verdict, c.verdict)
			}
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestAFailurePreventsFurtherCalls(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		failure Failure
		want    bool
	}{
		"none":      {Failure{}, true},
		"due later": {Failure{Retries: 1, Due: now.Add(1)}, false},
		"due now":   {Failure{Retries: 1, Due: now}, true},
		"overdue":   {Failure{Retries: 1, Due: now.Add(-time.Hour)}, true},
		"final":     {Failure{Retries: 1, Due: now, Final: true}, false},
	}
	for name, c := range cases {
		if got := c.failure.May(now); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestNoFailuresAreNil(t *testing.T) {
	var all Failures
	all = all.With("a", Failure{})
	if all != nil {
		t.Errorf("got %v after a success, want nil", all)
	}
	all = all.With("a", Failure{Retries: 1}).With("b", Failure{Retries: 1}).With("a", Failure{})
	if diff := cmp.Diff(Failures{"b": {Retries: 1}}, all); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if all = all.With("b", Failure{}); all != nil {
		t.Errorf("got %v after all functions succeeded, want nil", all)
	}
}

func TestKeepIsRecognizedUnlessItIsClassifiedAsAFailure(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"itself":    {Keep, true},
		"wrapped":   {fmt.Errorf("unchanged: %w", Keep), true},
		"other":     {errors.New("oops"), false},
		"none":      {nil, false},
		"temporary": {&handler.TemporaryError{Err: Keep}, false},
		"permanent": {&handler.PermanentError{Err: Keep}, false},
	}
	for name, c := range cases {
		if got := keeps(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
