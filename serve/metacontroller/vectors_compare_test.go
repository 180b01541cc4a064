package metacontroller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/diff"
)

// compare compares a step with its recording: the calls of hooks, the writes, and the objects
// at the end. exact means that two recordings were the same: then there are no other calls
// and no more calls than in the recording.
func (s *stage) compare(t *testing.T, number int, step vectorStep, from int, exact bool) {
	t.Helper()
	var calls []any
	for _, call := range s.hooks.take() {
		s.learnAll(call.request)
		calls = append(calls, map[string]any{"path": call.path, "request": s.normal(call.request), "header": call.header})
	}
	var wanted []any
	for _, e := range flatten(step.Expect) {
		request, ok := e["request"].(map[string]any)
		if !ok {
			continue
		}
		if request["controller"] == "<same>" {
			request["controller"] = s.controller
		}
		s.controller = request["controller"]
		headers, _ := e["headers"].(map[string]any)
		header := map[string]any{}
		for _, name := range []string{"Authorization", "If-None-Match"} {
			if headers[name] != nil {
				header[name] = headers[name]
			}
		}
		wanted = append(wanted, map[string]any{"path": e["path"], "request": clean(request), "header": header})
	}
	settled := step.Settled == nil || *step.Settled
	if exact && step.CutAfter == 0 {
		for _, call := range calls {
			s.member(t, fmt.Sprintf("step %d: a call was not recorded", number), call, wanted)
		}
	}
	if settled && len(wanted) > 0 { // fewer calls are right if the last one is the same
		s.member(t, fmt.Sprintf("step %d: the last recorded call was not made", number), wanted[len(wanted)-1], calls)
	}
	for _, call := range wanted {
		if !settled {
			s.member(t, fmt.Sprintf("step %d: a recorded call was not made", number), call, calls)
		}
	}
	if recorded := numberOfCalls(step.Expect); settled && (exact || recorded == 0) && len(calls) > recorded {
		t.Errorf("step %d: there were %d calls, and only %d recorded ones", number, len(calls), recorded)
	}
	got, late := s.writes(from)
	if want := recordedWrites(step); !sameWrites(got, late, want) {
		t.Errorf("step %d: writes:\n got %v\nwant %v", number, got, want)
	}
	if step.Objects != nil && step.CutAfter == 0 {
		s.compareObjects(t, number, step.Objects)
	}
}

// numberOfCalls returns how often the original called hooks in a step.
func numberOfCalls(entries []map[string]any) (n int) {
	for _, e := range entries {
		times := 1.0
		for _, field := range []string{"times", "repeated"} {
			if f, ok := number64(e[field]); ok {
				times = f
			}
		}
		if block, ok := e["block"].([]any); ok {
			var list []map[string]any
			for _, b := range block {
				list = append(list, b.(map[string]any))
			}
			n += int(times) * numberOfCalls(list)
		} else if e["request"] != nil {
			n += int(times)
		}
	}
	return n
}

func (s *stage) compareObjects(t *testing.T, number int, recorded []any) {
	t.Helper()
	got, _ := s.normal(s.learn(t)).([]any)
	want, _ := clean(recorded).([]any)
	got, want = uncollected(got), uncollected(want)
	if !diff.Equal(ordered(got), ordered(want)) {
		t.Errorf("step %d: objects:\n%v", number, diff.Of(any(ordered(want)), any(ordered(got))))
	}
}

// ordered sorts objects by kind and name.
func ordered(list []any) []any {
	slices.SortFunc(list, func(a, b any) int {
		x, y := unstructured.Unstructured{Object: a.(map[string]any)}, unstructured.Unstructured{Object: b.(map[string]any)}
		return strings.Compare(x.GetKind()+identity(&x), y.GetKind()+identity(&y))
	})
	return list
}

// uncollected removes the objects that the garbage collector deletes sooner or later.
func uncollected(list []any) []any {
	known := map[types.UID]bool{}
	for _, o := range list {
		known[(&unstructured.Unstructured{Object: o.(map[string]any)}).GetUID()] = true
	}
	return slices.DeleteFunc(list, func(o any) bool {
		ref := metav1.GetControllerOf(&unstructured.Unstructured{Object: o.(map[string]any)})
		return ref != nil && !known[ref.UID]
	})
}

func (s *stage) member(t *testing.T, problem string, call any, calls []any) {
	t.Helper()
	for _, other := range calls {
		if diff.Equal(call, other) {
			return
		}
	}
	nearest := any(nil)
	if len(calls) > 0 {
		nearest = calls[len(calls)-1]
	}
	t.Errorf("%s, of %d; difference to the last:\n%v", problem, len(calls), diff.Of(call, nearest))
}

func show(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// writes returns the successful writes of the operator, without repetitions, and its
// deletions of objects that the garbage collector had deleted before.
func (s *stage) writes(from int) (list, late []string) {
	for _, r := range s.cluster.Requests()[from:] {
		if !r.Write() || r.Header.Get("User-Agent") == "test" || r.Resource == "events" || r.Code >= 300 && r.Verb != "delete" {
			continue
		}
		path, _, _ := strings.Cut(r.Path, "?")
		path = sumPattern.ReplaceAllStringFunc(path, func(sum string) string {
			if s.sums[sum] == "" {
				s.sums[sum] = fmt.Sprintf("<sha1 %d>", len(s.sums)+1)
			}
			return s.sums[sum]
		})
		if r.Code >= 300 {
			late = append(late, r.Verb+" "+path)
			continue
		}
		list = append(list, r.Verb+" "+path)
	}
	slices.Sort(list)
	return slices.Compact(list), late
}

// sameWrites reports whether the writes are those of the recording. The original writes an
// unchanged object after its status.
func sameWrites(got, late, recorded []string) bool {
	want := slices.DeleteFunc(slices.Clone(recorded), func(w string) bool {
		return !slices.Contains(got, w) && (slices.Contains(recorded, w+"/status") || slices.Contains(late, w))
	})
	return slices.Equal(got, want)
}

func recordedWrites(step vectorStep) []string {
	var list []string
	for _, e := range flatten(step.Expect) {
		if code, _ := number64(e["code"]); e["write"] != nil && code < 300 {
			list = append(list, fmt.Sprint(e["write"], " ", e["path"]))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
