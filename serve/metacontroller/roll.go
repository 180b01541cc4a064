package metacontroller

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels of ControllerRevisions.
const (
	groupLabel    = Group + "/apiGroup"
	resourceLabel = Group + "/resource"
)

// Patch returns the fields of a parent that make up a revision. The paths are dotted.
func Patch(parent map[string]any, paths []string) map[string]any {
	patch := map[string]any{}
	for _, path := range paths {
		fields := strings.Split(path, ".")
		if value, ok, _ := unstructured.NestedFieldNoCopy(parent, fields...); ok {
			_ = unstructured.SetNestedField(patch, runtime.DeepCopyJSONValue(value), fields...)
		}
	}
	return patch
}

// Restored returns a parent with the fields of a revision.
func Restored(parent *unstructured.Unstructured, patch map[string]any, paths []string) *unstructured.Unstructured {
	restored := parent.DeepCopy()
	for _, path := range paths {
		fields := strings.Split(path, ".")
		if value, ok, _ := unstructured.NestedFieldCopy(patch, fields...); ok {
			_ = unstructured.SetNestedField(restored.Object, value, fields...)
		} else {
			unstructured.RemoveNestedField(restored.Object, fields...)
		}
	}
	return restored
}

// RevisionName returns the name of a parent's ControllerRevision.
func RevisionName(plural, group, uid string, patch map[string]any) (string, error) {
	text, err := json.Marshal(patch) // as Metacontroller does: the name depends on the bytes
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(append([]byte(uid), text...))
	return plural + "." + or(group, "core") + "-" + hex.EncodeToString(sum[:]), nil
}

// Member names a child in a revision: the API group, the kind and the name in it.
type Member struct{ Group, Kind, Name string }

// Revision is a former or the present form of a parent, with the children that have it.
type Revision struct {
	Members []Member
	Desired []*unstructured.Unstructured // of the hook's response for this form
}

// set returns the members as a set.
func set(members []Member) map[Member]bool {
	all := make(map[Member]bool, len(members))
	for _, m := range members {
		all[m] = true
	}
	return all
}

// Rollout is the input of [Roll].
type Rollout struct {
	Latest  Revision
	Older   []Revision
	Rolling func(*unstructured.Unstructured) *UpdateStrategy // nil means: the kind is not rolled
	Observe func(*unstructured.Unstructured) *unstructured.Unstructured
	Equal   func(observed, desired *unstructured.Unstructured) bool // compares forms
	Member  func(*unstructured.Unstructured) Member
}

// Condition is the condition Updated of a parent.
type Condition struct{ Status, Reason, Message string }

// Roll moves children to the latest revision, and returns the members of all revisions and
// the desired children. Children that no revision claims, and those that have the latest
// form, move at once. Of the others, one moves if all children of the latest revision are
// ready.
func Roll(r Rollout) (latest []Member, older [][]Member, desired []*unstructured.Unstructured, condition *Condition) {
	older = make([][]Member, len(r.Older))
	var waiting []*unstructured.Unstructured
	var moved []*unstructured.Unstructured // of the latest revision
	atLatest, holder := set(r.Latest.Members), map[Member]int{}
	for i := len(r.Older) - 1; i >= 0; i-- { // the first one that has a member counts
		for _, m := range r.Older[i].Members {
			holder[m] = i
		}
	}
	for _, d := range r.Latest.Desired {
		if r.Rolling(d) == nil {
			continue
		}
		m := r.Member(d)
		if _, claimed := holder[m]; claimed && !atLatest[m] && !r.equal(r.Observe(d), d) {
			waiting = append(waiting, d)
			continue
		}
		latest, moved = append(latest, m), append(moved, d)
	}
	if len(waiting) > 0 {
		next := waiting[0]
		if reason := unready(r, moved); reason != "" {
			condition = &Condition{"False", "RolloutWaiting", reason}
		} else {
			latest, waiting = append(latest, r.Member(next)), waiting[1:]
			condition = &Condition{"False", "RolloutProgressing", fmt.Sprintf("updating %s %s", next.GetKind(), r.Member(next).Name)}
		}
	}
	forms := make([]map[childName]*unstructured.Unstructured, len(r.Older))
	for i, o := range r.Older {
		forms[i] = make(map[childName]*unstructured.Unstructured, len(o.Desired))
		for _, d := range o.Desired {
			forms[i][nameOf(d)] = d
		}
	}
	for _, d := range r.Latest.Desired {
		form := d
		if len(waiting) > 0 && waiting[0] == d { // they have the same order
			waiting = waiting[1:]
			m := r.Member(d)
			i := holder[m]
			older[i] = append(older[i], m)
			if former := forms[i][nameOf(d)]; former != nil {
				form = former
			}
		}
		desired = append(desired, form)
	}
	return latest, older, desired, condition
}

// equal reports whether a child exists and has its desired form.
func (r Rollout) equal(observed, desired *unstructured.Unstructured) bool {
	return observed != nil && r.Equal(observed, desired)
}

// equalForm reports whether a merge would not change a child.
func equalForm(observed, desired *unstructured.Unstructured) bool {
	_, changed, err := Merge(observed.Object, desired.Object)
	return err == nil && !changed
}

// equalContent is [equalForm] for children without the annotation [LastApplied].
func equalContent(observed, desired *unstructured.Unstructured) bool {
	merged, _, err := Merge(observed.Object, desired.Object)
	return err == nil && sameContent(&unstructured.Unstructured{Object: merged}, observed)
}

// unready returns why a rollout must wait for children, or nothing.
func unready(r Rollout, children []*unstructured.Unstructured) string {
	for _, d := range children {
		name, strategy, observed := d.GetKind()+" "+r.Member(d).Name, r.Rolling(d), r.Observe(d)
		switch {
		case observed == nil:
			return "missing child " + name
		case !r.equal(observed, d):
			return "child " + name + " is not updated yet"
		}
		if strategy.Method == RollingInPlace {
			seen, ok, _ := unstructured.NestedInt64(observed.Object, "status", "observedGeneration")
			if ok && seen > 0 && seen < observed.GetGeneration() {
				return fmt.Sprintf("child %s with RollingInPlace update strategy hasn't observed latest spec", name)
			}
		}
		for _, check := range strategy.StatusChecks.Conditions {
			if problem := failed(check, observed); problem != "" {
				return fmt.Sprintf("child %s failed status check: %s", name, problem)
			}
		}
	}
	return ""
}

// failed returns why a child does not pass a check, or nothing.
func failed(check ConditionCheck, observed *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(observed.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] != check.Type {
			continue
		}
		if check.Status != nil && c["status"] != *check.Status {
			return fmt.Sprintf("%s condition status is %q (want %q)", check.Type, c["status"], *check.Status)
		}
		if check.Reason != nil && c["reason"] != *check.Reason {
			return fmt.Sprintf("%s condition reason is %q (want %q)", check.Type, c["reason"], *check.Reason)
		}
		return ""
	}
	return fmt.Sprintf("required condition type missing: %q", check.Type)
}

// SetCondition adds the condition Updated to a status. One that the hook set stays.
func SetCondition(status map[string]any, c Condition) {
	list, _ := status["conditions"].([]any)
	if slices.ContainsFunc(list, func(item any) bool { m, _ := item.(map[string]any); return m["type"] == "Updated" }) {
		return
	}
	status["conditions"] = append(slices.Clone(list), map[string]any{"type": "Updated", "status": c.Status, "reason": c.Reason, "message": c.Message})
}
