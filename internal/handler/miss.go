package handler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Criterion is a part of a handler's declaration that decides whether it matches.
type Criterion uint8

// The criteria.
const (
	Met          Criterion = iota // all of them are met
	OfReason                      // the handler is not declared for the reason
	OfMove                        // the field of the handler has not changed
	OfOldValue                    // the former value of the field does not match
	OfNewValue                    // the new value of the field does not match
	OfValue                       // neither value of the field matches
	OfSelector                    // the label selector does not match
	OfLabel                       // a label does not match
	OfAnnotation                  // an annotation does not match
	OfField                       // a field does not match
	OfFunction                    // a When function returned false
)

var criteria = [...]string{"", "reason", "change", "oldValue", "newValue", "value", "selector", "label", "annotation", "field", "function"}

// String returns the name of the criterion. It is empty for [Met].
func (c Criterion) String() string { return criteria[c] }

// Miss is the first criterion of a handler that an object or a cause does not meet. The
// zero value means that all are met. It is small, because filters are evaluated for every
// event; [Handler.Explain] turns it into a text.
type Miss struct {
	Criterion Criterion
	Index     int // in the labels, annotations, fields or functions of the handler
}

// Explain returns why the handler is not called for the request, as a clause such as
// `label tier is "dev", the handler requires "prod"`. It is empty if m is zero.
func (h *Handler) Explain(m Miss, r *Request) string {
	switch m.Criterion {
	case OfReason:
		return h.explainReason(r.Cause)
	case OfMove:
		return jsonvalue.Path(h.Change.Path).String() + " has not changed"
	case OfOldValue:
		return "the former " + requires(h.Change.Path, value(r.Cause.Old, h.Change), h.Change.Want.Old)
	case OfNewValue:
		return "the new " + requires(h.Change.Path, value(r.Cause.New, h.Change), h.Change.Want.New)
	case OfValue:
		return h.explainValue(r)
	case OfSelector:
		return fmt.Sprintf("the labels do not match the selector %q", h.Select)
	case OfLabel:
		k := h.Criteria.Labels[m.Index]
		v, present := r.Body.Labels()[k.Name]
		return "label " + requires([]string{k.Name}, Value{v, present}, k.Want)
	case OfAnnotation:
		k := h.Criteria.Annotations[m.Index]
		v, present := r.Body.Annotations()[k.Name]
		return "annotation " + requires([]string{k.Name}, Value{v, present}, k.Want)
	case OfField:
		f := h.Criteria.Fields[m.Index]
		return requires(f.Path, r.lookup(f.Path), f.Want)
	case OfFunction:
		if m.Index < len(h.WhenAt) && h.WhenAt[m.Index] != "" {
			return "the function of When at " + h.WhenAt[m.Index] + " returned false"
		}
		return "a function of When returned false"
	}
	return ""
}

func (h *Handler) explainReason(c *cause.Cause) string {
	var declared []string
	for reason := range h.Reasons {
		declared = append(declared, string(reason))
	}
	slices.Sort(declared)
	text := "it is declared for " + strings.Join(declared, ", ")
	if h.Reasons[cause.Resume] && c.Initial && c.Deleting {
		return text + ", and the object is being deleted"
	}
	return text + ", the reason is " + string(c.Reason)
}

func (h *Handler) explainValue(r *Request) string {
	want := h.Change.Want.Value
	if h.Change.Value == nil {
		want = "present"
	}
	if r.Cause != nil && r.Cause.Old != nil {
		before := requires(h.Change.Path, value(r.Cause.Old, h.Change), want)
		now := shown(value(r.Cause.New, h.Change))
		return "the former " + before + "; the new one is " + now
	}
	return requires(h.Change.Path, r.lookup(h.Change.Path), want)
}

// lookup returns a value of the object for an explanation. The values of Secrets are
// hidden.
func (r *Request) lookup(path []string) Value {
	v, present := r.Body.Lookup(path...)
	if present && r.Resource.Kind == "Secret" && r.Resource.Group == "" && (len(path) == 0 || path[0] == "data" || path[0] == "stringData") {
		v = "(hidden)"
	}
	return Value{v, present}
}

// requires describes a value, and the one that the handler requires.
func requires(path []string, is Value, want string) string {
	text := jsonvalue.Path(path).String()
	if len(path) == 1 {
		text = path[0]
	}
	text += " is " + shown(is)
	if want != "" {
		return text + ", the handler requires " + want
	}
	return text + ", the handler requires another value"
}

// maxShown limits the values in explanations.
const maxShown = 100

func shown(v Value) string {
	if !v.Present {
		return "absent"
	}
	text, err := json.Marshal(v.Is)
	if err != nil {
		return "unknown"
	}
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "…"
	}
	return string(text)
}
