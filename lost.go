package gopf

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/schema"
)

// lostEdits reports handlers that modify Object instead of requesting a patch, once
// each; see [ExecutionSettings.ReportLostEdits]. The zero value reports nothing.
type lostEdits struct {
	on   atomic.Bool
	told sync.Map // ids of handlers
}

// editable is an argument of a handler.
type editable interface {
	editor() (id string, log func(string))
	lostFields() []string
}

// reportingLostEdits returns hooks that report lost edits.
func reportingLostEdits() *hooks {
	h := &hooks{}
	h.on.Store(true)
	return h
}

// check reports the edits of a handler that has returned.
func (l *lostEdits) check(s editable) {
	if !l.on.Load() {
		return
	}
	id, log := s.editor()
	if _, told := l.told.Load(id); told {
		return
	}
	lost := s.lostFields()
	if len(lost) == 0 {
		return
	}
	if _, told := l.told.LoadOrStore(id, true); !told {
		log(fmt.Sprintf("Handler '%s' modified c.Object (%s); such edits are lost. Use c.Patch.", id, shortened(lost)))
	}
}

// maxListed limits the fields in a log line.
const maxListed = 5

func shortened(fields []string) string {
	if len(fields) > maxListed {
		fields = append(slices.Clone(fields[:maxListed]), fmt.Sprintf("and %d more", len(fields)-maxListed))
	}
	return strings.Join(fields, ", ")
}

func (s *Subject[T]) editor() (id string, log func(string)) {
	return s.req.Handler.ID, func(line string) { s.Log.Warn(line) }
}

// lostFields returns the paths of the fields of Object that were modified and are not
// sent by the patch. It returns nothing if that cannot be known: if the patch has edits,
// or if the handler has read the object from the cluster again.
func (s *Subject[T]) lostFields() []string {
	validating := s.req.Review != nil && s.req.Handler.Admission != nil && !s.req.Handler.Admission.Mutating
	if validating || s.flushed || len(s.req.Patch.Edits()) > 0 || reflect.ValueOf(s.Object).IsNil() {
		return nil
	}
	original, err := decode[T](s.req.Body)
	if err != nil || reflect.DeepEqual(original, s.Object) {
		return nil
	}
	before, err := jsonOf(original)
	if err != nil {
		return nil
	}
	after, err := jsonOf(s.Object)
	if err != nil || original.GetResourceVersion() != s.Object.GetResourceVersion() {
		return nil
	}
	sent := copied(before)
	patch.Apply(sent, s.req.Patch.Fields())
	return modified(nil, nil, before, after, sent)
}

// jsonOf returns the JSON of an object, decoded into maps.
func jsonOf[T Object](obj T) (map[string]any, error) {
	var v any = obj
	if u, ok := v.(Unstructured); ok {
		v = u.Object
	}
	decoded, err := asJSON(v)
	fields, _ := decoded.(map[string]any)
	return fields, err
}

// modified appends the paths at which after differs from both before and sent. Objects
// are compared by field, lists as a whole. An empty object counts as none.
func modified(paths []string, at jsonvalue.Path, before, after, sent any) []string {
	was, _ := before.(map[string]any)
	is, isObject := after.(map[string]any)
	switch {
	case diff.Equal(before, after), diff.Equal(sent, after):
		return paths
	case !isObject && !(after == nil && was != nil):
		return append(paths, schema.Text(at))
	}
	keys := map[string]bool{}
	for _, m := range []map[string]any{was, is} {
		for key := range m {
			keys[key] = true
		}
	}
	patched, _ := sent.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		paths = modified(paths, append(slices.Clone(at), key), was[key], is[key], patched[key])
	}
	return paths
}
