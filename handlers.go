package gopf

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/internal/registry"
)

// Reason is why a change handler is called. In declarations, reasons combine
// with |.
type Reason uint8

// The reasons.
const (
	Create Reason = 1 << iota // the object is seen for the first time
	Update                    // it has changed since it was handled
	Delete                    // its deletion was requested
	Resume                    // it is new to this process, but was handled before
)

var reasons = map[Reason]cause.Reason{
	Create: cause.Create, Update: cause.Update, Delete: cause.Delete, Resume: cause.Resume,
}

func (r Reason) String() string {
	var names []string
	for _, one := range []Reason{Create, Update, Delete, Resume} {
		if r&one != 0 {
			names = append(names, string(reasons[one]))
		}
	}
	return strings.Join(names, "|")
}

// OnCreate calls fn once for every new object, the ones that were there before
// the operator included.
func (r *Resource[T]) OnCreate(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Create, id, fn, opts...)
}

// OnUpdate calls fn when an object has changed since it was last handled, in
// its spec, labels, annotations or any other part but the status and the rest
// of the metadata.
func (r *Resource[T]) OnUpdate(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Update, id, fn, opts...)
}

// OnDelete calls fn before an object is deleted. The object gets a finalizer,
// so that its deletion waits for fn, unless the handler is [Optional].
func (r *Resource[T]) OnDelete(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Delete, id, fn, opts...)
}

// OnResume calls fn once in the life of a process for every object that was
// handled before it started.
func (r *Resource[T]) OnResume(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Resume, id, fn, opts...)
}

// OnField calls fn when the field appears, changes or disappears, whatever the
// reason. It is short for [Resource.Field] with a handler for all reasons.
func (r *Resource[T]) OnField(id, path string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.Field(path).OnChange(id, fn, opts...)
}

// OnChange calls fn when the field appears, changes or disappears, whatever the
// reason.
func (r *FieldResource[T]) OnChange(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	h := r.handler(Create|Update|Delete|Resume, id, fn, opts)
	h.AnyMove = true
	// It only takes part in deletions that wait for something else.
	h.Mandatory = false
	r.op.declare(h)
}

// On calls fn for any of the reasons, once for each change.
func (r *Resource[T]) On(reasons Reason, id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.op.declare(r.handler(reasons, id, fn, opts))
}

// handler erases T: below this line the framework knows only raw objects.
func (r *Resource[T]) handler(on Reason, id string, fn ChangeFunc[T], opts []ChangeOption) *registry.Handler {
	var spec changeSpec
	for _, o := range opts {
		o.change(&spec)
	}
	switch {
	case fn == nil:
		r.op.problem("handler %q has no function", id)
	case on&^(Create|Update|Delete|Resume) != 0 || on == 0:
		r.op.problem("handler %q has no reason to be called", id)
	case spec.optional && on&Delete == 0:
		r.op.problem("handler %q: Optional is for deletion handlers", id)
	case spec.skip:
		r.op.problem("handler %q: If is for sub-handlers; do not declare it", id)
	case spec.deleted && on&Resume == 0:
		r.op.problem("handler %q: AlsoDeleted is for resuming handlers", id)
	}
	h := &registry.Handler{
		ID: storedID(id, r.change), Formerly: storedIDs(spec.formerly, r.change), Where: caller(),
		Of: r.of, Select: r.selected, Managed: r.managed, Reasons: map[cause.Reason]bool{},
		Deleted:   spec.deleted,
		Mandatory: on&Delete != 0 && !spec.optional,
		Criteria:  r.criteria, Change: r.change, When: r.when,
		Limits: spec.limits,
		Call:   erase(fn),
	}
	for one, known := range reasons {
		if on&one != 0 {
			h.Reasons[known] = true
		}
	}
	return h
}

// erase makes a handler's function one that takes any object.
func erase[T Object](fn ChangeFunc[T]) func(context.Context, *registry.Request) error {
	return func(ctx context.Context, req *registry.Request) error {
		c, err := newChange[T](req)
		if err != nil {
			return &registry.UndecodableError{Err: err}
		}
		return classify(c.run(ctx, fn))
	}
}

func storedID(id string, change *filter.Change) string {
	if change == nil {
		return id
	}
	return id + "/" + fieldpath.Path(change.Path).String()
}

func storedIDs(ids []string, change *filter.Change) []string {
	var stored []string
	for _, id := range ids {
		stored = append(stored, storedID(id, change))
	}
	return stored
}

// storable is what is left of an id when it becomes the name of an annotation.
var storable = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// storedName makes a name that can be stored of any text.
func storedName(text string) string {
	return strings.Trim(unstorable.ReplaceAllString(text, "-"), "-_.")
}

var unstorable = regexp.MustCompile(`[^-A-Za-z0-9_.]+`)

// checkID tells why an id cannot be stored on an object, if it cannot.
func checkID(id string) error {
	name := strings.NewReplacer("/", ".", "<", "_", ">", "_").Replace(id)
	switch {
	case id == "":
		return fmt.Errorf("a handler has no id")
	case name == "gopf.handling" || name == "gopf.bound":
		return fmt.Errorf("the id %q is reserved: Gopf keeps records of its own under it", id)
	case !storable.MatchString(name):
		return fmt.Errorf("the id %q cannot be stored on objects: use letters, digits and -_./ inside", id)
	}
	return nil
}
