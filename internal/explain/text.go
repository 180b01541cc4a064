package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/terminal"
)

// summarize returns the state of the object in one line.
func (r *Report) summarize() string {
	name := r.Object.Kind + " " + strings.TrimPrefix(r.Object.Namespace+"/"+r.Object.Name, "/")
	return name + ": " + r.step()
}

// named returns the ids of the handlers of a family that are in a phase, as a list.
func (r *Report) named(family string, phase process.Phase) string {
	var ids []string
	for _, h := range r.Handlers {
		if h.Phase == string(phase) && h.Family == family && !slices.Contains(ids, h.ID) {
			ids = append(ids, h.ID)
		}
	}
	return strings.Join(ids, ", ")
}

// reconciled describes the reconcile handlers of an object for which no change handler is
// called. "" means that none applies.
func (r *Report) reconciled() string {
	for _, is := range []struct {
		phase process.Phase
		text  string
	}{
		{process.Due, "calls %s now"},
		{process.Delayed, "waits for %s"},
		{process.Failed, "%s has failed, and is called again when the object or a child changes"},
		{process.Matched, "reconciled by %s"},
	} {
		if ids := r.named("reconcile", is.phase); ids != "" {
			return fmt.Sprintf(is.text, ids)
		}
	}
	return ""
}

// step describes the next step.
func (r *Report) step() string {
	named := func(phase process.Phase) string { return r.named("change", phase) }
	switch process.Next(r.Next) {
	case process.NextCall:
		if due := named(process.Due); due != "" {
			return r.Reason + ": calls " + due + " now"
		}
		return r.Reason + ": " + named(process.Exhausted) + " fails, because its limits are reached"
	case process.NextWait:
		return r.Reason + ": waits for " + named(process.Delayed)
	case process.NextFinish:
		return r.Reason + ": no handler is left to call"
	case process.NextAddFinalizer:
		return r.Reason + ": the operator adds its finalizer, and then handles the object"
	case process.NextRemoveFinalizer:
		return r.Reason + ": the operator removes its finalizer"
	case process.NextSend:
		return r.Reason + ": the operator sends changes that handlers have requested"
	case process.NextTidy:
		return "the operator removes obsolete state"
	case process.NextPaused:
		text := "paused by the annotation " + r.Pause.Annotation
		if r.Pause.Until != nil {
			text += " until " + r.Pause.Until.Format(time.RFC3339)
		}
		if r.Pause.Reason != "" {
			text += ": " + r.Pause.Reason
		}
		return text
	case process.NextElsewhere:
		return "another operator owns the object, because its labels do not match the selector"
	case process.NextDeleteChildren:
		return "being deleted: the operator deletes the children first"
	}
	if reconciled := r.reconciled(); reconciled != "" {
		return reconciled
	}
	if r.Next == string(process.NextUnmatched) {
		return "no change handler matches the object"
	}
	if r.Object.Deleting {
		return "being deleted, and the operator has nothing to do"
	}
	return "handled, and unchanged since"
}

// longText limits one text of the object in the output, and longSummary a sentence that may
// have several, in characters.
const (
	longText    = 200
	longSummary = 2000
)

// Write prints the report as text. now is for relative times.
func (r *Report) Write(to io.Writer, now time.Time) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, cut(r.Summary, longSummary))
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", cut(note, longSummary))
	}
	if r.Pause != nil && r.Pause.Problem != "" {
		fmt.Fprintf(w, "  %s\n", cut(r.Pause.Problem, longSummary))
	}
	for i, c := range r.Changes {
		title := ""
		if i == 0 {
			title = "changed"
		}
		fmt.Fprintf(w, "  %s\t%s %s\t%s\n", title, c.Op, cut(c.Path, longText), c.values())
	}
	if r.More > 0 {
		fmt.Fprintf(w, "  \tand %d more changes\n", r.More)
	}
	for _, h := range r.Handlers {
		h.write(w, "  ", now)
	}
	for i, c := range r.Children {
		title := ""
		if i == 0 {
			title = "children"
		}
		fmt.Fprintf(w, "  %s\t%s %s\n", title, cut(c.Kind, longText), cut(c.Name, longText))
	}
	fmt.Fprintf(w, "  deletion\t%s\n", cut(r.Deletion.text(r.Object.Deleting), longSummary))
	return w.Flush()
}

// Text describes the change in one line.
func (c Change) Text() string { return c.Op + " " + cut(c.Path, longText) + "  " + c.values() }

// values returns both values of a change.
func (c Change) values() string {
	show := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil || v == nil {
			return "nothing"
		}
		return cut(string(text), 60)
	}
	return show(c.Old) + " → " + show(c.New)
}

// write prints one handler and its sub-handlers.
func (h Handler) write(w io.Writer, indent string, now time.Time) {
	name := cut(h.ID, longText)
	if h.Family != "change" {
		name += " (" + h.Family + ")"
	}
	fmt.Fprintf(w, "%s%s\t%s\t%s\n", indent, name, h.text(now), h.Where)
	for _, sub := range h.Subs {
		sub.write(w, indent+"  ", now)
	}
}

func (h Handler) text(now time.Time) string {
	attempts := fmt.Sprintf("%d attempts", h.Attempts)
	if h.Attempts == 1 {
		attempts = "1 attempt"
	}
	why := cut(h.Why, longSummary) // it may quote values of the object
	var text string
	switch process.Phase(h.Phase) {
	case process.Due:
		text = "is called now"
		if h.Attempts > 0 {
			text += ", after " + attempts
		}
	case process.Delayed:
		text = "retries"
		if h.Due != nil {
			text += " in " + max(0, h.Due.Sub(now)).Round(time.Second).String()
		}
		text += ", after " + attempts
		if h.Family == "reconcile" {
			text += ", or when the object or a child changes"
		}
	case process.Succeeded:
		text = "done, " + attempts
	case process.Failed:
		text = "failed, " + attempts
		if h.Family == "reconcile" { // its record has no number of attempts
			text = "failed until the object or a child changes"
		}
	case process.Exhausted:
		text = "fails: " + why
	case process.Unmatched:
		text = "not called: " + why
		if h.OnRestart {
			text += "; called when the operator starts again"
		}
	case process.Blocked:
		text = "waits"
		if why != "" {
			text += ": " + why
		}
	default:
		text = "applies"
	}
	if h.Message != "" && h.Phase != string(process.Succeeded) {
		text += ": " + cut(h.Message, longText)
	}
	return text
}

func (d Deletion) text(deleting bool) string {
	var waits []string
	required := slices.Clone(d.Requires)
	if d.Children {
		required = append(required, "children")
	}
	switch {
	case len(required) > 0:
		waits = append(waits, "the finalizer "+d.Finalizer+" ("+strings.Join(required, ", ")+")")
	case d.Guarded:
		waits = append(waits, "the finalizer "+d.Finalizer+" (no handler requires it)")
	}
	waits = append(waits, d.Others...)
	verb := "would wait for "
	if deleting {
		verb = "waits for "
	}
	if len(waits) == 0 {
		return strings.TrimSuffix(verb, " for ") + " for nothing"
	}
	return verb + strings.Join(waits, " · ")
}

// cut limits the length of a text of the object, keeps it in one line, and escapes what
// would control a terminal.
func cut(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "…"
	}
	return terminal.Line(s)
}
