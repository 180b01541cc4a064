package controller

import (
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/history"
	"gopf.dev/gopf/internal/vitals"
)

// trail adds the steps of the objects of one resource to the history. It implements
// [process.Trail].
type trail struct {
	ring   *history.Ring
	secret bool // of Secrets: their texts may have values, and are not kept
}

func (t *trail) Turned(uid, why string, start time.Time) {
	t.ring.Add(uid, history.Entry{At: start, Took: time.Since(start), Step: history.Turn, Text: why})
}

func (t *trail) Called(uid, id string, o execute.Outcome, took time.Duration) {
	e := history.Entry{At: time.Now().Add(-took), Took: took, Step: history.Call, Handler: id, Outcome: vitals.OutcomeOf(o).String(), Text: o.Message}
	if e.Text == "" && o.Ignored != nil {
		e.Text = o.Ignored.Error()
	}
	t.add(uid, e)
}

func (t *trail) Wrote(uid string, err error, start time.Time) {
	e := history.Entry{At: start, Took: time.Since(start), Step: history.Write, Outcome: "succeeded"}
	if err != nil {
		e.Outcome, e.Text = "failed", err.Error()
	}
	t.add(uid, e)
}

func (t *trail) Posted(uid, reason, message string) {
	t.add(uid, history.Entry{At: time.Now(), Step: history.Posted, Text: reason + ": " + message})
}

func (t *trail) add(uid string, e history.Entry) {
	if t.secret {
		e.Text = ""
	}
	t.ring.Add(uid, e)
}
