package model_test

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// userWrote is told the server's response to a user's write.
func (o *oracle) userWrote(method string, answer []byte) {
	var obj map[string]any
	if err := json.Unmarshal(answer, &obj); err != nil || obj["kind"] != "Thing" {
		return // it is gone
	}
	var exact struct {
		Metadata struct {
			UID               string
			DeletionTimestamp string
			Finalizers        []string
		}
	}
	_ = json.Unmarshal(answer, &exact)
	m := exact.Metadata
	s := state{text: canonical(answer), object: obj, deleting: m.DeletionTimestamp != ""}
	for _, f := range m.Finalizers {
		s.guarded = s.guarded || strings.HasPrefix(f, storageKey)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.states[m.UID] = append(o.states[m.UID], s)
}

// doomed is told that an object is deleted with its kind or its namespace.
func (o *oracle) doomed(obj *unstructured.Unstructured) {
	s := state{text: userState(obj.Object), object: obj.Object, deleting: true}
	for _, f := range obj.GetFinalizers() {
		s.guarded = s.guarded || strings.HasPrefix(f, storageKey)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	uid := string(obj.GetUID())
	o.states[uid] = append(o.states[uid], s)
}

// canonical is the part of an object that users write, given as JSON.
func canonical(text []byte) string {
	var obj map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&obj); err != nil {
		return err.Error()
	}
	return userState(obj)
}

// ambiguous reports whether different changes of the object may have one key:
// those of metadata that are the same again, with others in between.
func (o *oracle) ambiguous(uid string) bool {
	known := map[string]int{}
	spec := ""
	for i, s := range o.states[uid] {
		if now := specOf(s.object); now != spec {
			spec = now
			clear(known)
		}
		if last, found := known[s.text]; found && last != i-1 {
			return true
		}
		known[s.text] = i
	}
	return false
}

// specOf is the part of the spec that users write.
func specOf(obj map[string]any) string {
	text, _ := json.Marshal(without(asMap(obj["spec"]), func(k string) bool { return k == ownSpec }))
	return string(text)
}
