// Package widget defines the kinds of objects for all measurements.
package widget

import (
	"fmt"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all kinds.
var GroupVersion = schema.GroupVersion{Group: "bench.gopf.dev", Version: "v1"}

// StateKey is the key in the status for operators that keep their state there.
const StateKey = "bench"

// Kinds are equal kinds. Several of them prevent measurements from finding objects of earlier
// ones.
var Kinds = map[string]string{"widgets": "Widget", "gadgets": "Gadget", "sprockets": "Sprocket", "gears": "Gear"}

// Resource returns the resource of a kind by its plural.
func Resource(plural string) schema.GroupVersionResource { return GroupVersion.WithResource(plural) }

// Widget is an object of any of the kinds.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// Spec is the desired state.
type Spec struct {
	Group   string  `json:"group"`
	Payload []Entry `json:"payload"`
	Size    int64   `json:"size"`
	Stamp   int64   `json:"stamp"` // when it was written, in Unix nanoseconds; 0 if that is of no interest
}

// Entry makes objects large.
type Entry struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Status is written by operators.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Create             *Result            `json:"create,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Result is the result of handlers.
type Result struct {
	Message string `json:"message"`
	Size    int64  `json:"size"`
}

// Payload returns words that compress like text. Each entry has about a hundred bytes of
// JSON. The same seed gives the same payload.
func Payload(entries int, seed uint64) []Entry {
	random := rand.New(rand.NewPCG(seed, 1))
	payload := make([]Entry, entries)
	for i := range payload {
		value := make([]byte, 0, 80)
		for len(value) < 70 {
			value = append(fmt.Appendf(value, "%s%d", words[random.IntN(len(words))], random.IntN(1000)), ' ')
		}
		payload[i] = Entry{Name: fmt.Sprintf("entry-%d", i), Value: string(value[:70])}
	}
	return payload
}

var words = []string{"volume", "claim", "namespace", "replica", "image", "port", "secret", "mount", "probe", "limit", "quota", "label"}

// DeepCopyObject makes it an object for controller-runtime.
func (w *Widget) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopy returns a deep copy.
func (w *Widget) DeepCopy() *Widget {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Payload = append([]Entry(nil), w.Spec.Payload...)
	c.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	if w.Status.Create != nil {
		r := *w.Status.Create
		c.Status.Create = &r
	}
	return &c
}

// List is a list of widgets.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject makes it an object for controller-runtime.
func (l *List) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}
