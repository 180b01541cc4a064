package discovery

import (
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/stream"
)

// Verdict is the conclusion from an event about a namespace.
type Verdict struct {
	// Served reports whether the namespace must be served. It must until it is deleted,
	// or until its conditions show that it is empty: the deletion of its objects may
	// depend on our handlers.
	Served bool

	// Blockers are the reasons why its deletion is blocked, if it is being deleted.
	Blockers []Blocker
}

// Blocker is a condition that blocks the deletion of a namespace.
type Blocker struct{ Reason, Message string }

// JudgeNamespace returns the conclusion from an event about a namespace. It is pure.
func JudgeNamespace(e stream.Event) Verdict {
	if e.Type == kube.Deleted {
		return Verdict{}
	}
	if _, deleting := e.Body.Lookup("metadata", "deletionTimestamp"); !deleting {
		return Verdict{Served: true}
	}
	found, _ := e.Body.Lookup("status", "conditions")
	conditions, _ := found.([]any)
	v := Verdict{Served: len(conditions) == 0} // without conditions, the contents are not known yet
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
