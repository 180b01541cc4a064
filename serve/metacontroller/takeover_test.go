package metacontroller

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"gopf.dev/gopf"
	"gopf.dev/gopf/diff"
)

// TestRecordedStatesAreTakenOver begins with the objects that Metacontroller left after a
// step of a recording, such as the middle of a rollout. The start must write nothing.
// The next step must cause the recorded writes and leave the recorded objects. Gopf so
// leaves what Metacontroller would have left, which can be handed back at any time.
func TestRecordedStatesAreTakenOver(t *testing.T) {
	folder := os.Getenv("GOPF_METACONTROLLER_VECTORS")
	if folder == "" {
		folder = "testdata"
	}
	total := 0
	for _, topic := range []string{"apply", "children", "decorator", "finalize", "ownership", "requests", "rolling-intended", "status", "strategies"} {
		text, err := os.ReadFile(filepath.Join(folder, topic+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Cases []vectorCase `json:"cases"`
		}
		if err := utiljson.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			if _, other := differs[topic+"/"+c.Name]; other || c.ProcessEnded || counting(c) {
				continue
			}
			for i := range c.Steps {
				if i+1 == len(c.Steps) || !takeable(c.Steps[i]) || c.Steps[i+1].Settled != nil && !*c.Steps[i+1].Settled {
					continue
				}
				total++
				t.Run(fmt.Sprintf("%s/%s/%d", topic, c.Name, i), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { takeOver(t, c, i) })
				})
				if topic == "apply" {
					continue // server-side apply has other rules for lists
				}
				t.Run(fmt.Sprintf("%s/%s/%d/server-side", topic, c.Name, i), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { upgrade(t, c, i) })
				})
			}
		}
	}
	if total < 50 && folder == "testdata" {
		t.Errorf("only %d states were taken over", total)
	}
}

// takeable reports whether the objects after a step can be created by a test. Those that
// are being deleted cannot.
func takeable(step vectorStep) bool {
	return step.Objects != nil && (step.Settled == nil || *step.Settled) && !strings.Contains(show(step.Objects), `"deletionTimestamp"`)
}

// counting reports whether a hook answers each call differently. The first call after a
// takeover then changes something.
func counting(c vectorCase) bool {
	for _, step := range c.Steps {
		for _, answers := range step.Hooks {
			for _, a := range answers {
				if text, ok := a["computed"].(string); ok && strings.Contains(text, "status.n") {
					return true
				}
			}
		}
	}
	return false
}

// leave prepares the cluster as Metacontroller left it after a step.
func leave(t *testing.T, c vectorCase, last int) *stage {
	t.Helper()
	s := newVectorStage(t, c)
	for i := range c.Steps[:last+1] {
		for name, answers := range c.Steps[i].Hooks {
			s.hooks.set(vectorStep{Hooks: map[string][]map[string]any{name: answers[len(answers)-1:]}})
		}
		for _, action := range c.Steps[i].Do {
			if setsUp(action) {
				if err := s.do(t, action); err != nil && c.Steps[i].DoError == nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, m := range uidPattern.FindAllStringSubmatch(show(c.Steps[:last+1]), -1) {
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		s.counts[m[1]] = max(s.counts[m[1]], n)
	}
	s.restore(t, c.Steps[last].Objects)
	return s
}

// uidPattern matches the placeholder of a UID as JSON: what it names, and the number.
var uidPattern = regexp.MustCompile(`\\u003cuid ([^ ]*?)(?: #(\d+))?\\u003e`)

func takeOver(t *testing.T, c vectorCase, last int) {
	s := leave(t, c, last)
	before := len(s.cluster.Requests())
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	Declare(op, Options{Transport: s.hooks, Discovery: time.Second})
	stop := s.start(t, op)
	defer stop()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	if got, _ := s.writes(before); len(got) > 0 {
		t.Fatalf("the start wrote %v", got)
	}
	next := c.Steps[last+1]
	s.hooks.set(next)
	from := len(s.cluster.Requests())
	for _, action := range next.Do {
		if err := s.do(t, action); err != nil && next.DoError == nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
	s.learn(t)
	got, late := s.writes(from)
	if want := recordedWrites(next); !sameWrites(got, late, want) {
		t.Errorf("writes:\n got %v\nwant %v", got, want)
	}
	if next.Objects != nil {
		s.compareObjects(t, last+1, next.Objects)
	}
}

// upgrade takes over with server-side apply. The start may write, but it neither creates
// nor deletes a child, and it changes nothing but the annotation of the dynamic apply.
func upgrade(t *testing.T, c vectorCase, last int) {
	s := leave(t, c, last)
	before := len(s.cluster.Requests())
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	Declare(op, Options{Transport: s.hooks, Discovery: time.Second, ServerSide: formerManager})
	stop := s.start(t, op)
	defer stop()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	got, _ := s.writes(before)
	for _, w := range got {
		if strings.HasPrefix(w, "create ") || strings.HasPrefix(w, "delete ") {
			t.Errorf("the start wrote %s", w)
		}
	}
	bare := func(list []any) []any {
		for _, o := range list {
			u := unstructured.Unstructured{Object: o.(map[string]any)}
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", LastApplied)
			unstructured.RemoveNestedField(u.Object, "metadata", "generation")
			if len(u.GetAnnotations()) == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
			}
		}
		return uncollected(list)
	}
	objects, _ := s.normal(s.learn(t)).([]any)
	want, _ := clean(c.Steps[last].Objects).([]any)
	if g, w := bare(objects), bare(want); !diff.Equal(ordered(g), ordered(w)) {
		t.Errorf("objects:\n%v", diff.Of(any(w), any(g)))
	}
}

// setsUp reports whether an action concerns an object that recordings of objects lack:
// controllers, Secrets, definitions and namespaces.
func setsUp(action map[string]any) bool {
	for verb, argument := range action {
		arg, _ := argument.(map[string]any)
		kind, _ := arg["kind"].(string)
		switch kind {
		case "CompositeController", "DecoratorController", "Secret", "CustomResourceDefinition", "Namespace":
			return verb != "wait"
		}
	}
	return false
}

// restore creates recorded objects, owners first.
func (s *stage) restore(t *testing.T, recorded []any) {
	t.Helper()
	list := uncollected(slices.Clone(recorded))
	owned := func(o any) bool {
		return metav1.GetControllerOfNoCopy(&unstructured.Unstructured{Object: o.(map[string]any)}) != nil
	}
	slices.SortStableFunc(list, func(a, b any) int {
		switch {
		case owned(a) == owned(b):
			return 0
		case owned(a):
			return 1
		}
		return -1
	})
	names := map[string]string{} // real UIDs and sums by their placeholders
	resolved := func(value any) map[string]any {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for placeholder, name := range names {
			text = strings.ReplaceAll(text, jsonText(placeholder), name)
		}
		var out map[string]any
		if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	made := make([]*unstructured.Unstructured, len(list))
	for i, item := range list {
		obj := &unstructured.Unstructured{Object: resolved(item)}
		placeholder := string(obj.GetUID())
		if obj.GetKind() == "ControllerRevision" {
			s.nameRevision(t, obj, names)
			obj = &unstructured.Unstructured{Object: resolved(obj.Object)}
		}
		made[i] = s.make(t, obj)
		names[placeholder] = string(made[i].GetUID())
		s.uids[string(made[i].GetUID())] = placeholder
	}
	for i, item := range list {
		status, ok := resolved(item)["status"]
		if !ok || made[i].GetKind() == "NoStatus" {
			continue
		}
		made[i].Object["status"] = status
		if _, err := s.client(made[i].GetKind(), made[i].GetAPIVersion(), made[i].GetNamespace()).UpdateStatus(t.Context(), made[i], metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// nameRevision replaces the sum in the name of a recorded revision by the one for the real UID.
func (s *stage) nameRevision(t *testing.T, obj *unstructured.Unstructured, names map[string]string) {
	t.Helper()
	patch, _ := obj.Object["parentPatch"].(map[string]any)
	labels := obj.GetLabels()
	name, err := RevisionName(labels[resourceLabel], labels[groupLabel], string(metav1.GetControllerOf(obj).UID), patch)
	if err != nil {
		t.Fatal(err)
	}
	_, placeholder, _ := strings.Cut(obj.GetName(), "-<")
	_, sum, _ := strings.Cut(name, "-")
	names["<"+placeholder] = sum
	s.sums[sum] = "<" + placeholder
}

// make creates an object with the generation of the recording.
func (s *stage) make(t *testing.T, recorded *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	obj := recorded.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	if obj.GetKind() != "NoStatus" {
		delete(obj.Object, "status")
	}
	in := s.client(obj.GetKind(), obj.GetAPIVersion(), obj.GetNamespace())
	first := obj.DeepCopy()
	times := max(recorded.GetGeneration(), 1)
	field := []string{"spec", "restored"}
	if obj.GetKind() == "ControllerRevision" {
		field = []string{"restored"}
	}
	change := func(o *unstructured.Unstructured, n int64) {
		if n < times {
			_ = unstructured.SetNestedField(o.Object, n, field...)
		}
	}
	change(first, 1)
	made, err := in.Create(t.Context(), first, metav1.CreateOptions{FieldManager: formerManager})
	for n := int64(2); err == nil && n <= times; n++ {
		next := obj.DeepCopy()
		next.SetUID(made.GetUID())
		next.SetResourceVersion(made.GetResourceVersion())
		change(next, n)
		made, err = in.Update(t.Context(), next, metav1.UpdateOptions{FieldManager: formerManager})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := made.GetGeneration(); got != recorded.GetGeneration() {
		t.Fatalf("%s has the generation %d, not %d", describe(made), got, recorded.GetGeneration())
	}
	return made
}
