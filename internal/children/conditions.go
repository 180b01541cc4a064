package children

import (
	"slices"
	"time"

	"gopf.dev/gopf/internal/terminal"
)

// Condition is a status condition of an object.
type Condition struct {
	Type, Reason, Message string
	Status                bool
	Generation            int64 // the generation of the object that it was derived from
}

// longestMessage is the maximum length of a message in bytes: that of the conditions of
// Kubernetes. With a longer message, the API server would refuse the whole status.
const longestMessage = 32 << 10

// CutMessage returns a text as the message of a condition. Messages may quote the object or
// its children, which other clients write.
func CutMessage(text string) string { return terminal.Cut(text, longestMessage) }

// DatedCondition is a condition with the time at which it was set.
type DatedCondition struct {
	Condition
	At time.Time
}

// SetCondition is [SetConditions] for one condition.
func SetCondition(o map[string]any, c Condition, now time.Time) {
	SetConditions(o, []any{DatedCondition{c, now}})
}

// SetConditions sets conditions in an object, given as decoded JSON. The changes are values of
// [DatedCondition], as the parts of [patch.Patch.Join] are. The transition time of one
// changes only if its status does. An equal condition stays as it is. A long message is cut.
// The time is linear: handlers may set one for each item of a list.
func SetConditions(o map[string]any, changes []any) {
	list, places := conditions(o), map[string]int{}
	for i, c := range slices.Backward(list) {
		if m, _ := c.(map[string]any); m != nil {
			if kind, ok := m["type"].(string); ok {
				places[kind] = i // the first one of the type
			}
		}
	}
	for _, change := range changes {
		c := change.(DatedCondition)
		fresh := map[string]any{"type": c.Type, "status": statusText(c.Status), "reason": c.Reason, "message": CutMessage(c.Message), "observedGeneration": c.Generation}
		fresh["lastTransitionTime"] = c.At.UTC().Format(time.RFC3339)
		i, known := places[c.Type]
		if !known {
			places[c.Type] = len(list)
			list = append(list, fresh)
			continue
		}
		old := list[i].(map[string]any)
		if at, ok := old["lastTransitionTime"].(string); ok && old["status"] == fresh["status"] {
			fresh["lastTransitionTime"] = at
		}
		list[i] = fresh
	}
	setConditions(o, list)
}

// RemoveCondition removes a condition from an object.
func RemoveCondition(o map[string]any, kind string) {
	list := conditions(o)
	i := slices.IndexFunc(list, func(c any) bool {
		m, _ := c.(map[string]any)
		return m != nil && m["type"] == kind
	})
	if i >= 0 {
		setConditions(o, slices.Delete(list, i, i+1))
	}
}

// SetObserved sets the generation of the object that its status was derived from.
func SetObserved(o map[string]any, generation int64) {
	if generation > 0 {
		status(o)["observedGeneration"] = generation
	}
}

// conditions returns a copy of the conditions.
func conditions(o map[string]any) (list []any) {
	if s, ok := o["status"].(map[string]any); ok {
		known, _ := s["conditions"].([]any)
		list = slices.Clone(known)
	}
	return list
}

func setConditions(o map[string]any, list []any) { status(o)["conditions"] = list }

func status(o map[string]any) map[string]any {
	s, ok := o["status"].(map[string]any)
	if !ok {
		s = map[string]any{}
		o["status"] = s
	}
	return s
}

func statusText(is bool) string {
	if is {
		return "True"
	}
	return "False"
}
