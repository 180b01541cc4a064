// Package readiness decides whether an object is ready, by the rules of kstatus. It is
// pure.
package readiness

import (
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
)

// State is the verdict about an object.
type State int

// The states. They have the meaning of Current, InProgress and Failed in kstatus.
const (
	Current State = iota
	InProgress
	Failed
)

func (s State) String() string { return [...]string{"Current", "InProgress", "Failed"}[s] }

// Verdict is the state of an object, with a message about the missing part.
type Verdict struct {
	State   State
	Message string // empty if the state is Current
}

func current() Verdict { return Verdict{} }

func progress(format string, args ...any) Verdict {
	return Verdict{InProgress, fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) Verdict { return Verdict{Failed, fmt.Sprintf(format, args...)} }

// Of returns the verdict about an object, given as decoded JSON.
func Of(o map[string]any) Verdict {
	f := fields(o)
	if f.text("metadata", "deletionTimestamp") != "" {
		return progress("it is being deleted")
	}
	generation, observed := f.number("metadata", "generation"), f.number("status", "observedGeneration")
	if _, reported := f.at("status", "observedGeneration"); reported && observed < generation {
		return progress("generation %d is not observed yet", generation)
	}
	if rule := ruleOf(f.text("apiVersion"), f.text("kind")); rule != nil {
		return rule(f)
	}
	return f.generic()
}

// HasRule reports whether a kind has its own rule. Of objects of other kinds, only the
// metadata and the status matter.
func HasRule(apiVersion, kind string) bool { return ruleOf(apiVersion, kind) != nil }

func ruleOf(apiVersion, kind string) func(fields) Verdict { return rules[group(apiVersion)+"/"+kind] }

var rules = map[string]func(fields) Verdict{
	"apps/Deployment":  deployment,
	"apps/ReplicaSet":  replicaSet,
	"apps/StatefulSet": statefulSet,
	"apps/DaemonSet":   daemonSet,
	"batch/Job":        job,
	"batch/CronJob":    func(fields) Verdict { return current() },
	"/Pod":             pod,
	"/PersistentVolumeClaim": func(f fields) Verdict {
		if phase := f.text("status", "phase"); phase != "Bound" {
			return progress("the claim is not bound")
		}
		return current()
	},
	"/Service": func(f fields) Verdict {
		if f.text("spec", "type") == "LoadBalancer" && f.text("spec", "clusterIP") == "" {
			return progress("the service has no cluster IP")
		}
		return current()
	},
	"policy/PodDisruptionBudget": func(fields) Verdict { return current() },
	"apiextensions.k8s.io/CustomResourceDefinition": func(f fields) Verdict {
		if status, message := f.condition("NamesAccepted"); status == "False" {
			return failed("%s", message)
		}
		if status, _ := f.condition("Established"); status != "True" {
			return progress("the definition is not established")
		}
		return current()
	},
}

func group(apiVersion string) string {
	for i := range apiVersion {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}

// generic is the rule of kinds without their own one: conditions decide.
func (f fields) generic() Verdict {
	if status, message := f.condition("Stalled"); status == "True" {
		return failed("%s", orText(message, "it is stalled"))
	}
	if status, message := f.condition("Reconciling"); status == "True" {
		return progress("%s", orText(message, "it is being reconciled"))
	}
	if status, message := f.condition("Ready"); status == "False" || status == "Unknown" {
		return progress("%s", orText(message, "it is not ready"))
	}
	return current()
}

func deployment(f fields) Verdict {
	if status, message := f.condition("Progressing"); status == "False" && f.conditionReason("Progressing") == "ProgressDeadlineExceeded" {
		return failed("%s", orText(message, "the progress deadline is exceeded"))
	}
	want := f.numberOr(1, "spec", "replicas")
	switch {
	case f.unobserved():
		return progress("the controller has not seen it yet")
	case f.number("status", "updatedReplicas") < want:
		return progress("%d of %d replicas are updated", f.number("status", "updatedReplicas"), want)
	case f.number("status", "replicas") > want:
		return progress("%d replicas are still to be removed", f.number("status", "replicas")-want)
	case f.number("status", "availableReplicas") < want:
		return progress("%d of %d replicas are available", f.number("status", "availableReplicas"), want)
	case f.number("status", "readyReplicas") < want:
		return progress("%d of %d replicas are ready", f.number("status", "readyReplicas"), want)
	}
	return current()
}

func replicaSet(f fields) Verdict {
	want := f.numberOr(1, "spec", "replicas")
	switch {
	case f.unobserved():
		return progress("the controller has not seen it yet")
	case f.number("status", "fullyLabeledReplicas") < want:
		return progress("%d of %d replicas are labeled", f.number("status", "fullyLabeledReplicas"), want)
	case f.number("status", "availableReplicas") < want:
		return progress("%d of %d replicas are available", f.number("status", "availableReplicas"), want)
	case f.number("status", "readyReplicas") < want:
		return progress("%d of %d replicas are ready", f.number("status", "readyReplicas"), want)
	}
	return current()
}

func statefulSet(f fields) Verdict {
	want := f.numberOr(1, "spec", "replicas")
	switch {
	case f.text("spec", "updateStrategy", "type") == "OnDelete":
		return current()
	case f.unobserved():
		return progress("the controller has not seen it yet")
	case f.number("status", "replicas") < want:
		return progress("%d of %d replicas exist", f.number("status", "replicas"), want)
	case f.number("status", "readyReplicas") < want:
		return progress("%d of %d replicas are ready", f.number("status", "readyReplicas"), want)
	case f.number("status", "replicas") > want:
		return progress("%d replicas are still to be removed", f.number("status", "replicas")-want)
	}
	if partition := f.number("spec", "updateStrategy", "rollingUpdate", "partition"); partition > 0 {
		if updated := f.number("status", "updatedReplicas"); updated < want-partition {
			return progress("%d of %d replicas are updated", updated, want-partition)
		}
		return current()
	}
	if f.text("status", "currentRevision") != f.text("status", "updateRevision") {
		return progress("the replicas are being updated")
	}
	return current()
}

func daemonSet(f fields) Verdict {
	want := f.number("status", "desiredNumberScheduled")
	if _, reported := f.at("status", "desiredNumberScheduled"); !reported || f.unobserved() {
		return progress("the controller has not seen it yet")
	}
	for _, n := range []struct{ field, what string }{
		{"currentNumberScheduled", "scheduled"}, {"updatedNumberScheduled", "updated"}, {"numberAvailable", "available"}, {"numberReady", "ready"},
	} {
		if got := f.number("status", n.field); got < want {
			return progress("%d of %d pods are %s", got, want, n.what)
		}
	}
	return current()
}

func job(f fields) Verdict {
	if status, message := f.condition("Failed"); status == "True" {
		return failed("%s", orText(message, "the job has failed"))
	}
	if f.text("status", "startTime") == "" {
		return progress("the job has not started")
	}
	return current()
}

func pod(f fields) Verdict {
	switch f.text("status", "phase") {
	case "Succeeded":
		return current()
	case "Failed":
		return failed("the pod has failed")
	case "Running":
		if status, message := f.condition("Ready"); status != "True" {
			return progress("%s", orText(message, "the pod is not ready"))
		}
		return current()
	}
	return progress("the pod is not running")
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// fields is an object as decoded JSON.
type fields map[string]any

func (f fields) at(path ...string) (any, bool) { return jsonvalue.Lookup(map[string]any(f), path...) }

func (f fields) text(path ...string) string {
	v, _ := f.at(path...)
	s, _ := v.(string)
	return s
}

func (f fields) number(path ...string) int64 { return f.numberOr(0, path...) }

func (f fields) numberOr(fallback int64, path ...string) int64 {
	switch v, _ := f.at(path...); n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}

// unobserved reports whether no controller has written the status.
func (f fields) unobserved() bool {
	_, reported := f.at("status", "observedGeneration")
	return !reported
}

func (f fields) find(kind string) map[string]any {
	v, _ := f.at("status", "conditions")
	list, _ := v.([]any)
	i := slices.IndexFunc(list, func(c any) bool {
		m, _ := c.(map[string]any)
		return m != nil && m["type"] == kind
	})
	if i < 0 {
		return nil
	}
	return list[i].(map[string]any)
}

func (f fields) condition(kind string) (status, message string) {
	c := f.find(kind)
	status, _ = c["status"].(string)
	message, _ = c["message"].(string)
	return status, message
}

func (f fields) conditionReason(kind string) string {
	reason, _ := f.find(kind)["reason"].(string)
	return reason
}
