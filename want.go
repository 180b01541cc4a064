package gopf

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/internal/reconcile"
)

// Child is a child that was declared with [Want].
type Child[C any] struct {
	// Exists reports whether the child exists.
	Exists bool
	// Ready reports whether the child is ready; see [ReadyWhen].
	Ready bool
	// Message says why the child is not ready. It is empty if it is.
	Message string

	wanted  *handler.Wanted
	body    handler.Content // of the live child; nil means that it does not exist, or is decoded
	reserve func(bytes int) error
	live    C
}

// Live returns the child as it is in the cluster. It is empty, but never nil, if the child
// does not exist. The first call decodes it, and all calls return the same object. If the
// child does not fit its type, or cannot be read, Live is empty, the child is not applied,
// and the handler is retried.
func (c *Child[C]) Live() C {
	body := c.body
	if body == nil {
		return c.live
	}
	c.body = nil
	found, err := body()
	if err != nil {
		return c.unusable(err)
	}
	if err := c.reserve(memoryOf[C](found)); err != nil {
		return c.unusable(fmt.Errorf("read %s: %w", c.wanted.Key, err))
	}
	live, err := decodeChild[C](found)
	if err != nil {
		return c.unusable(fmt.Errorf("%s does not fit its type: %w", c.wanted.Key, err))
	}
	c.live = live
	return live
}

// smallChild is the memory of a decoded child, in bytes, up to which only its JSON counts.
const smallChild = 8 << 10

// memoryOf returns the approximate memory of a live child, in bytes.
func memoryOf[C any](b *object.Body) int {
	switch any(*new(C)).(type) {
	case map[string]any, *unstructured.Unstructured:
		return b.Size() + b.Memory()
	}
	return b.Size() + b.MemoryAs(footprint.Of(reflect.TypeFor[C]()), smallChild)
}

// unusable notes why the live child cannot be used. It returns an empty child.
func (c *Child[C]) unusable(err error) C {
	c.wanted.Problem = err
	c.Ready, c.Message = false, err.Error()
	return c.live
}

func (c *Child[C]) dependency(s *wantSpec) { s.DependsOn = append(s.DependsOn, c.wanted) }

// dependency is a [Child] of any type, or a [SubHandler].
type dependency interface{ dependency(*wantSpec) }

// WantOption is an option of [Want].
type WantOption func(*wantSpec)

type wantSpec struct {
	handler.Wanted
	subs    []*SubHandler // the dependencies of a sub-handler
	initial []string
	ready   func(any) bool // nil means the built-in rules
	fits    func(any) bool // reports whether ready can be called
}

// Want declares a child of the object and returns its state in the cluster. It sends no
// request: the operator applies all declared children after the handler has returned
// without an error. The child is a typed object, [Unstructured] or a map. It needs a name.
// A child without a namespace gets the namespace of the object. [Owns] must declare its
// kind. With more than 2,000 children, the call fails permanently, and none is written.
//
// Declare only the fields that the operator should own. Other fields belong to other
// clients and stay as they are. The operator adds its label, and the owner reference.
//
//	set := gopf.Want(r, statefulSet(r.Object), gopf.CreateOnlyFields("spec.replicas"))
//	if !set.Ready {
//		r.Log.Info("Not ready yet.", "why", set.Message)
//	}
func Want[C any, T Object](r *Reconciliation[T], child C, opts ...WantOption) *Child[C] {
	spec := wantSpec{}
	for _, o := range opts {
		o(&spec)
	}
	list := r.req.Children
	if len(spec.subs) > 0 {
		list.Reject(errors.New("declare a child: it depends on a sub-handler"))
	}
	w := &spec.Wanted
	c := &Child[C]{wanted: w, live: empty(child), reserve: list.Reserve}
	if c.reserve == nil {
		c.reserve = func(int) error { return nil }
	}
	if len(list.Wanted) == children.MaxEntries { // the number may come from the object
		if !errors.Is(list.Mistake(), errTooManyChildren) {
			list.Reject(errTooManyChildren)
		}
		return c
	}
	list.Wanted = append(list.Wanted, w)
	obj, err := asObject(child)
	target := kube.Target{}
	if err == nil {
		target, err = r.describe(w, obj, spec.initial)
	}
	if unknown := new(apiclient.UnknownError); errors.As(err, &unknown) {
		w.Problem, c.Message = err, err.Error()
		return c
	}
	if err == nil && !list.Claim(w.Key) {
		err = fmt.Errorf("%s is declared twice", w.Key)
	}
	if err != nil {
		list.Reject(fmt.Errorf("declare a child: %w", err))
		return c
	}
	if w.Rolling.Group != "" && w.Rolling.Limit < 1 {
		list.Reject(fmt.Errorf("declare %s: RollingUpdate(%q, %d) allows no change", w.Key, w.Rolling.Group, w.Rolling.Limit))
	}
	if ready := spec.ready; ready != nil {
		if !spec.fits(any(c.live)) {
			list.Reject(fmt.Errorf("declare %s: the function of ReadyWhen takes another type than %T", w.Key, child))
			return c
		}
		w.Ready = func(b *object.Body) bool {
			memory := memoryOf[C](b)
			if err := c.reserve(memory); err != nil {
				w.Problem = err
				return false
			}
			defer func() { _ = c.reserve(-memory) }() // it never fails
			live, err := decodeChild[C](b)
			return err == nil && ready(any(live))
		}
	}
	if err := c.encode(obj, target); err != nil {
		list.Reject(fmt.Errorf("declare a child: %w", err))
		return c
	}
	if w.Problem != nil {
		c.Message = w.Problem.Error()
		return c
	}
	c.look(list.Find(w.Key))
	return c
}

// encode sets the manifest of the child, after it has reserved the memory for it: many children
// may repeat one long text of the object. Without enough memory, that is the problem of the child.
func (c *Child[C]) encode(obj client.Object, target kube.Target) error {
	w, reserved := c.wanted, apiclient.ManifestMemory(obj)
	if w.Problem = c.reserve(reserved); w.Problem != nil {
		return nil
	}
	fields, err := apiclient.Manifest(obj, target)
	if err != nil {
		return err
	}
	if w.Problem = c.reserve(2*jsonvalue.Weight(fields) - reserved); w.Problem == nil { // the object of the handler, and the manifest
		w.Fields = fields
	}
	return nil
}

var errTooManyChildren = fmt.Errorf("the handler declares more than %d children of one object", children.MaxEntries)

// describe fills in the identity of a child, and returns its endpoint.
func (r *Reconciliation[T]) describe(w *handler.Wanted, obj client.Object, initial []string) (kube.Target, error) {
	api, ok := r.API.(*apiclient.Client)
	if !ok {
		return kube.Target{}, fmt.Errorf("the client %T cannot be used for children", r.API)
	}
	if obj.GetName() == "" {
		return kube.Target{}, fmt.Errorf("the %T has no name; generated names are not possible, because the child must have the same name in each call", obj)
	}
	target, err := api.Endpoint(obj)
	if err != nil {
		return target, err
	}
	for _, path := range initial {
		w.Initial = append(w.Initial, mustPath(path))
	}
	w.Info = target.Info
	w.APIVersion, w.Kind, w.Namespace, w.Name = target.Info.APIVersion(), target.Info.Kind, target.Namespace, target.Name
	owned, anywhere := r.req.Handler.Reconcile.Owns(target.Info)
	switch own := r.req.Body.Namespace; {
	case !owned:
		return target, fmt.Errorf("the handler does not own %s; add gopf.Owns[%T]() to its options", w.Key, obj)
	case own != "" && w.Namespace != "" && w.Namespace != own && !anywhere:
		return target, fmt.Errorf("%s is in the namespace %s; add gopf.Owns[%T](gopf.InOtherNamespaces()) to the options of the handler", w.Key, w.Namespace, obj)
	}
	return target, nil
}

// look fills in the live state. body may be nil.
func (c *Child[C]) look(body handler.Content, builtIn readiness.Verdict) {
	if body == nil {
		c.Message = c.wanted.Key.String() + " does not exist"
		return
	}
	c.body, c.Exists = body, true
	c.Ready, _, c.Message = reconcile.Ready(c.wanted, builtIn, body)
}

// asObject returns a child as an object.
func asObject(child any) (client.Object, error) {
	switch c := child.(type) {
	case map[string]any:
		return &unstructured.Unstructured{Object: c}, nil
	case client.Object:
		if reflect.ValueOf(c).Kind() == reflect.Pointer && reflect.ValueOf(c).IsNil() {
			return nil, fmt.Errorf("the child is a nil %T", child)
		}
		return c, nil
	}
	return nil, fmt.Errorf("a %T is neither an object nor a map", child)
}

// empty returns an empty child of the same type.
func empty[C any](child C) C {
	t := reflect.TypeFor[C]()
	switch {
	case t.Kind() == reflect.Map:
		return reflect.MakeMap(t).Interface().(C)
	case t == reflect.TypeFor[*unstructured.Unstructured]():
		return any(&unstructured.Unstructured{Object: map[string]any{}}).(C)
	case t.Kind() == reflect.Pointer:
		return reflect.New(t.Elem()).Interface().(C)
	}
	return child
}

// decodeChild decodes a live child.
func decodeChild[C any](b *object.Body) (live C, err error) {
	switch any(live).(type) {
	case map[string]any:
		fields, err := b.Fields()
		if err != nil {
			return live, err
		}
		return any(fields).(C), nil
	case *unstructured.Unstructured:
		fields, err := b.Fields()
		if err != nil {
			return live, err
		}
		return any(&unstructured.Unstructured{Object: fields}).(C), nil
	}
	live = empty(live)
	return live, b.Decode(live)
}

// DependsOn makes a child wait for others: it is created or changed only when these are
// ready. A child that another client has deleted or changed is repaired at once. Deletions
// run in the opposite order. If the object is deleted, its children are deleted in that
// order as well; a finalizer keeps the object until then.
//
// As an option of [Change.Sub], it makes a sub-handler wait for others. It is called after
// all of them have succeeded and this is stored on the object. If one of them fails
// permanently, the sub-handler fails as well, without being called. A sub-handler that was
// left out by [If] or by its filters counts as succeeded.
func DependsOn(on ...dependency) WantOption {
	return func(s *wantSpec) {
		for _, d := range on {
			d.dependency(s)
		}
	}
}

// change makes DependsOn an option of [Change.Sub].
func (o WantOption) change(s *changeSpec) {
	var spec wantSpec
	o(&spec)
	s.after = append(s.after, spec.subs...)
	s.misplaced = s.misplaced || len(spec.subs) == 0
}

// ReadyWhen lets fn decide whether a live child is ready, instead of the built-in rules.
// The built-in rules are those of kstatus for workloads, jobs, claims and definitions. A
// child of another kind is ready unless its conditions say otherwise.
func ReadyWhen[C any](fn func(C) bool) WantOption {
	return func(s *wantSpec) {
		s.fits = func(live any) bool { _, fits := live.(C); return fits }
		s.ready = func(live any) bool { return fn(live.(C)) }
	}
}

// CreateOnly creates the child if it does not exist, and never changes its content
// afterwards: only the label of the operator is restored. The content may be random, such
// as a password.
func CreateOnly() WantOption { return func(s *wantSpec) { s.CreateOnly = true } }

// CreateOnlyFields sets the fields at the paths when the child is created, and leaves them
// to other clients afterwards. For example, "spec.replicas" belongs to an autoscaler. It
// costs one more write at the creation.
func CreateOnlyFields(paths ...string) WantOption {
	return func(s *wantSpec) { s.initial = append(s.initial, paths...) }
}

// AllowRecreate lets the operator delete the child and create it again if the API server
// refuses a change because a field is immutable. Without it, the change fails.
func AllowRecreate() WantOption { return func(s *wantSpec) { s.AllowRecreate = true } }

// RollingUpdate changes the children of a group one after the other: a child that is ready
// is changed only while fewer than n others of the group are not ready. New children are
// created at once, and repairs do not wait. A child that is not ready is changed at once:
// a wrong change can be corrected. n must be at least 1.
//
//	for _, shard := range shards(r.Object) {
//		gopf.Want(r, shard, gopf.RollingUpdate("shards", 1))
//	}
func RollingUpdate(group string, n int) WantOption {
	return func(s *wantSpec) { s.Rolling = handler.Rolling{Group: group, Limit: n} }
}

// PruneLast keeps a child that is no longer declared until all other children are ready.
func PruneLast() WantOption { return func(s *wantSpec) { s.PruneLast = true } }

// Orphan keeps a child when it is no longer declared, and when the object is deleted. Such
// a child has no owner reference.
func Orphan() WantOption { return func(s *wantSpec) { s.Orphan = true } }

// AdoptExisting takes over an existing object of that name that no other object controls.
// Without it, the operator does not touch the object and reports a conflict.
func AdoptExisting() WantOption { return func(s *wantSpec) { s.AdoptExisting = true } }
