package admission

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// table has the handlers of all resources that were found by one discovery.
type table struct {
	ids       map[string]string // ids of webhooks, by their names in URLs
	resources map[schema.GroupVersionResource]*reviewed
	types     map[string]*footprint.Type // of reviews with Go types, by the ids of their handlers
}

// reviewed is a resource with its handlers.
type reviewed struct {
	info     kind.Info
	handlers handler.Set
	managed  bool // objects are needed with their managedFields
}

// reviewType returns the type of a review with the objects of a handler. It is that of
// [incoming], as far as the Go type of the handler matters for its memory.
func reviewType(of reflect.Type) *footprint.Type {
	objects := reflect.StructOf([]reflect.StructField{
		{Name: "Object", Type: of, Tag: `json:"object"`},
		{Name: "OldObject", Type: of, Tag: `json:"oldObject"`},
	})
	return footprint.Of(reflect.StructOf([]reflect.StructField{{Name: "Request", Type: objects, Tag: `json:"request"`}}))
}

// memory returns the approximate memory of the objects of a review as the Go types of its
// handlers. id selects one of them; "" means all.
func (t *table) memory(id string, body []byte) (most int64) {
	for handler, as := range t.types {
		if id == "" || id == handler {
			most = max(most, int64(as.Memory(body, smallTyped)))
		}
	}
	return most
}

// smallTyped is the memory of objects as Go types that is not counted. The number of
// concurrent reviews limits it.
const smallTyped = 64 << 10

func newTable(handlers handler.Set, resources []kind.Info) *table {
	t := &table{ids: map[string]string{}, resources: map[schema.GroupVersionResource]*reviewed{}, types: map[string]*footprint.Type{}}
	for _, h := range handlers {
		t.ids[h.ID] = h.ID
		if h.Type != nil {
			t.types[h.ID] = reviewType(h.Type)
		}
	}
	for _, h := range handlers {
		if alias := servicePath(h.ID); t.ids[alias] == "" {
			t.ids[alias] = h.ID
		}
		for _, info := range h.Of.Select(resources) {
			r := t.resources[info.GVR()]
			if r == nil {
				r = &reviewed{info: info}
				t.resources[info.GVR()] = r
			}
			r.handlers = append(r.handlers, h)
			r.managed = r.managed || h.Managed
		}
	}
	return t
}

// Covered returns the resources that have review handlers.
func Covered(handlers handler.Set, resources []kind.Info) []kind.Info {
	t := newTable(handlers.Of(handler.Reviews), resources)
	return slices.DeleteFunc(slices.Clone(resources), func(i kind.Info) bool { return t.resources[i.GVR()] == nil })
}

// choose returns the handlers that match the request, in the order of declaration. If id
// is not empty, only the handler with this id is considered.
func (r *reviewed) choose(id string, req *handler.Request) handler.Set {
	var chosen handler.Set
	for _, h := range r.handlers {
		if (id == "" || h.ID == id) && matches(h, req) {
			chosen = append(chosen, h)
		}
	}
	return chosen
}

// matches reports whether a handler matches the operation, the subresource and the
// object of a review.
func matches(h *handler.Handler, req *handler.Request) bool {
	review := req.Review
	switch {
	case !h.Admission.Takes(review.Operation, review.Subresource):
		return false
	case h.Admission.Typed && review.Kind.Kind != "" && review.Kind.Kind != req.Resource.Kind:
		return false // a subresource of another kind does not fit the handler's Go type
	}
	if c := h.Change; c != nil {
		v, present := jsonvalue.Lookup(req.Body.Map(), c.Path...)
		if !c.Touches(handler.Value{Is: v, Present: present}) {
			return false
		}
	}
	return h.MatchesObject(req)
}
