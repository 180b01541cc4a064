package observe

import "gopf.dev/gopf/internal/stream"

// Verdict is what an event says about a namespace.
type Verdict struct {
	// Served is whether the namespace is to be served. It is until it is gone or
	// the cluster says that nothing is left in it: what is in it may wait for our
	// handlers to be deleted.
	Served bool

	// Blockers are what its deletion waits for, if it is being deleted.
	Blockers []Blocker
}

// Blocker is something that the deletion of a namespace waits for.
type Blocker struct{ Reason, Message string }

// JudgeNamespace decides about a namespace by an event. It is pure.
func JudgeNamespace(e stream.Event) Verdict {
	if e.Type == stream.Deleted {
		return Verdict{}
	}
	if _, deleting := e.Body.Lookup("metadata", "deletionTimestamp"); !deleting {
		return Verdict{Served: true}
	}
	found, _ := e.Body.Lookup("status", "conditions")
	conditions, _ := found.([]any)
	v := Verdict{Served: len(conditions) == 0} // nobody has looked into it yet
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["status"] == "True" {
			reason, _ := condition["reason"].(string)
			message, _ := condition["message"].(string)
			v.Blockers = append(v.Blockers, Blocker{reason, message})
			v.Served = true
		}
	}
	return v
}
