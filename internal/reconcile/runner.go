// Package reconcile brings the children of one object to their desired state. It reads
// the live children from the store of package childwatch, lets package children decide,
// and sends the requests: server-side applies and deletions bound to the uid.
//
// The response to an apply replaces the child in the store at once, so the next decision
// never acts on a state from before the operator's own write.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/internal/turnstile"
	"gopf.dev/gopf/kind"
)

// Runner applies and deletes the children of all objects of an operator. It is safe for
// concurrent use.
type Runner struct {
	Objects *apiclient.Objects // its client reads managedFields
	Store   *childwatch.Store
	Name    string // of the operator: its field manager, and the value of its label

	// SecretKey is the key of the digests of values of Secrets. nil means that they are salted
	// with the uid of the owner only.
	SecretKey []byte

	blind sync.Map // the kinds without managedFields that were reported
	reads turnstile.Gate
}

// maxReads limits the objects that are read for the owners of a namespace at the same time.
// Their size is not known before, and a tenant can let its owners refer to many large objects.
const maxReads = 2

// Owner is the object that has the children.
type Owner struct {
	Info kind.Info
	object.Identity
}

// Task is the work after one call of a reconcile handler.
type Task struct {
	Owner     Owner
	Inventory *children.Inventory // of this handler; not modified
	Others    []children.Entry    // the children of the other reconcile handlers of the object
	Alone     bool                // the object has no other reconcile handlers
	Retry     bool                // the last call failed
	Wanted    []*handler.Wanted
	Prune     bool // delete the children that are not wanted
	Fights    *Fights
	Log       *slog.Logger

	// Guard saves the inventory, and adds the finalizer, before a child is created that
	// the garbage collector would not delete in the right order.
	Guard func(context.Context, *children.Inventory) error

	// Turn waits until a child of so many bytes may be written. The caller must call leave
	// after the write. Clients of its namespace can make a child large, so the owner must not
	// wait for other writes to that namespace. nil means that no write waits.
	Turn func(ctx context.Context, size int) (leave func(), err error)
}

// Problem is a child that could not be brought to its desired state.
type Problem struct {
	Reason string // a word for conditions, such as Conflict
	Err    error
}

// Result is the outcome of a [Task].
type Result struct {
	Inventory *children.Inventory
	Actions   []children.Action
	Problems  []Problem // the first ones
	Others    int       // the problems that are not in Problems
	Waiting   string    // the first child that is not ready, with the reason; "" means none
	Failed    string    // the first child that has failed, with the reason; "" means none
	Written   int       // the number of requests that changed something
	Changed   bool      // another client changed a child during its apply
	// Again is the delay until the next repair of a child that another client keeps
	// changing; 0 means that there is none.
	Again time.Duration
	Fight string // describes such a child when it is found first; "" means none
}

// maxProblems limits the problems that are kept. Each may have the long text of a response,
// and clients choose how many children an object has.
const maxProblems = 20

// Err returns the first problems as an error, and the number of others. nil means that there
// is no problem.
func (r *Result) Err() error {
	var all []error
	for _, p := range r.Problems {
		all = append(all, p.Err)
	}
	if r.Others > 0 {
		all = append(all, fmt.Errorf("there are %d more problems", r.Others))
	}
	return errors.Join(all...)
}

// run is the state of one [Task].
type run struct {
	*Runner
	Task
	began  time.Time
	result Result
	ready  map[*handler.Wanted]bool
	exist  map[*handler.Wanted]bool // the children that exist although the store does not have them
	full   map[string]string        // the groups of which no more child may be changed now, with the reason
	turned map[*handler.Wanted]bool // the children that a plan changes; nil without a plan
	judged map[*handler.Wanted]judged

	reference map[string]any // the owner reference of all children; not modified
}

// Run brings the children to their desired state, as far as that is possible now. One
// child that cannot be applied does not affect the others. The error is that of Guard.
func (r *Runner) Run(ctx context.Context, t Task) (Result, error) {
	x := &run{Runner: r, Task: t, began: time.Now(), ready: map[*handler.Wanted]bool{}, full: map[string]string{}}
	x.result.Inventory = &children.Inventory{Owner: t.Owner.UID, Entries: make([]children.Entry, 0, len(t.Wanted))}
	desired := make([]children.Desired, 0, len(t.Wanted))
	for _, w := range t.Wanted {
		if err := x.mark(w); err != nil && w.Problem == nil {
			w.Problem = err
		}
		desired = append(desired, w.Desired)
	}
	if err := x.guard(ctx, desired); err != nil {
		return x.result, err
	}
	for _, w := range t.Wanted {
		x.one(ctx, w)
	}
	x.prune(ctx, desired)
	return x.result, nil
}

// guard calls Guard if a desired child requires it.
func (x *run) guard(ctx context.Context, desired []children.Desired) error {
	planned := &children.Inventory{Owner: x.Owner.UID, Entries: slices.Clip(x.Inventory.Entries)} // not modified: appending copies
	for i, d := range desired {
		if x.Wanted[i].Problem == nil && (d.Outside || d.Wave > 0) && !d.Orphan && planned.Find(d.Key) == nil {
			planned.Entries = append(planned.Entries, children.Entry{Key: d.Key, Wave: d.Wave, Outside: d.Outside})
		}
	}
	if x.Guard == nil || !children.NeedsFinalizer(planned.Entries) {
		return nil
	}
	return x.Guard(ctx, planned)
}

// one brings one child to its desired state.
func (x *run) one(ctx context.Context, w *handler.Wanted) {
	known := x.Inventory.Find(w.Key)
	waiting := x.awaited(w)
	if w.Problem != nil {
		x.fail("ApplyFailed", w.Problem)
		x.keep(known)
		return
	}
	if i := slices.IndexFunc(x.Others, func(e children.Entry) bool { return e.Key == w.Key }); i >= 0 {
		x.fail("Conflict", fmt.Errorf("%s is a child of another reconcile handler of this object", w.Key))
		return
	}
	child := x.Store.Find(w.Key)
	if child == nil && (waiting == "" || known != nil) && x.readsFirst(w, known) {
		found, err := x.read(ctx, x.Owner.Namespace, w.Info, w.Key)
		if err != nil {
			x.fail("ApplyFailed", fmt.Errorf("read %s: %w", w.Key, err))
			x.keep(known)
			return
		}
		child = found
	}
	live, err := x.live(ctx, child)
	if err != nil {
		x.fail("ApplyFailed", err)
		x.keep(known)
		return
	}
	action := children.Decide(w.Desired, live, known, waiting)
	x.result.Actions = append(x.result.Actions, action)
	switch action.Verb {
	case children.Keep:
		if !child.Applied && !w.CreateOnly && x.applyBlindly(w, child) {
			x.apply(ctx, w, child, known)
			return
		}
		if w.CreateOnly && !child.Labelled && child.BelongsTo(x.Owner.UID, x.Owner.Namespace) {
			x.label(ctx, w, child, known)
			return
		}
		x.conclude(ctx, w, child, known)
	case children.Wait:
		x.wait(action.Reason)
		x.keep(known)
	case children.Refuse:
		x.fail("Conflict", errors.New(action.Reason))
		x.keep(known)
	case children.Repair, children.Change:
		if action.Verb == children.Change {
			if reason := x.rolling(ctx, w, child); reason != "" {
				x.wait(reason)
				x.keep(known)
				return
			}
		}
		if known != nil && known.Digest == w.Digest { // the declaration is the same: another client has changed the child
			if pause := x.Fights.Repair(w.Key, time.Now()); pause > 0 {
				x.fight(ctx, w, pause)
				x.keep(known)
				return
			}
		}
		x.apply(ctx, w, child, known)
	default:
		x.apply(ctx, w, child, known)
	}
}

// awaited returns the first dependency that is not ready. "" means that all are.
func (x *run) awaited(w *handler.Wanted) string {
	for _, on := range w.DependsOn {
		if !x.ready[on] {
			return on.Key.String()
		}
	}
	return ""
}

// turn waits until the child may be written. A nil child means that it does not exist.
func (x *run) turn(ctx context.Context, w *handler.Wanted, child *childwatch.Child) (leave func(), err error) {
	if x.Turn == nil {
		return func() {}, nil
	}
	size := jsonvalue.Weight(w.Fields) / decodedTimes
	if child != nil {
		size = max(size, child.WriteSize())
	}
	return x.Turn(ctx, size)
}

// decodedTimes is about the memory of decoded values per byte of their JSON.
const decodedTimes = 3

// apply sends the child to the API server.
func (x *run) apply(ctx context.Context, w *handler.Wanted, child *childwatch.Child, known *children.Entry) {
	target := kube.Target{Info: w.Info, Namespace: w.Namespace, Name: w.Name}
	fields := with(w.Fields, "resourceVersion", noVersion)
	if child != nil {
		fields = with(without(w.Fields, w.Initial), "uid", child.UID)
	}
	if child == nil || child.Applied { // without managedFields, each apply would change the annotation
		tracing.Stamp(ctx, fields)
	}
	leave, err := x.turn(ctx, w, child)
	if err != nil {
		x.fail("ApplyFailed", fmt.Errorf("write %s: %w", w.Key, err))
		x.keep(known)
		return
	}
	defer func() { leave() }()
	former := child != nil && known == nil
	x.Store.Sending(w.Key)
	var body *object.Body
	if former && child.Owner == x.Owner.UID {
		err = x.takeOver(ctx, target)
	}
	if err == nil {
		body, err = x.Objects.Apply(ctx, target, fields, kube.FieldManager(x.Name), kube.Force())
	}
	if err == nil && former && child.Owner == "" {
		body, err = x.release(ctx, target, body)
	}
	if err == nil && child == nil && len(w.Initial) > 0 {
		x.result.Written++
		body, err = x.Objects.Apply(ctx, target, only(w.Fields, w.Initial), kube.FieldManager(x.Name+"-initial"), kube.Force())
	}
	if err != nil {
		x.result.Changed = x.Store.Sent(w.Key, nil) || x.result.Changed
		if child == nil && apierrors.IsConflict(err) && !x.readsFirst(w, known) {
			x.retract(w)
			leave()
			leave = func() {}
			x.one(ctx, w)
			return
		}
		leave() // the child may be created again
		leave = func() {}
		x.refused(ctx, w, child, known, err)
		return
	}
	x.result.Written++
	now := x.Store.At(w.Info, body.Identity) // its event may arrive before the response
	if now == nil {
		now, err = x.Store.Read(w.Info, body)
	}
	if err != nil {
		x.Store.Sent(w.Key, nil)
		x.fail("ApplyFailed", fmt.Errorf("read the response for %s: %w", w.Key, err))
		x.keep(known)
		return
	}
	x.result.Changed = x.Store.Sent(w.Key, now) || x.result.Changed
	if !now.Applied {
		x.Fights.appliedBlindly(w.Key, body.ResourceVersion, time.Now())
		x.reportBlindness(w)
	}
	x.conclude(ctx, w, now, nil)
}

// refused handles an apply that failed. An immutable field may be changed by creating the
// child again, if the user allowed that.
func (x *run) refused(ctx context.Context, w *handler.Wanted, child *childwatch.Child, known *children.Entry, err error) {
	x.keep(known)
	switch unchangeable := immutable(err, child); {
	case unchangeable && w.AllowRecreate:
		if err := x.remove(ctx, w.Info, child); err != nil {
			x.fail("ApplyFailed", fmt.Errorf("delete %s: %w", w.Key, err))
			return
		}
		if x.Store.Find(w.Key) == nil {
			x.apply(ctx, w, nil, nil)
			return
		}
		x.wait(fmt.Sprintf("%s is being deleted, because an immutable field has changed", w.Key))
	case unchangeable:
		x.fail("ApplyFailed", fmt.Errorf("apply %s: %w; use AllowRecreate to let the operator delete the child and create it again", w.Key, err))
	default:
		x.fail("ApplyFailed", fmt.Errorf("apply %s: %w", w.Key, err))
	}
}

// immutable reports whether an apply of an existing child failed because of a field that
// cannot be changed. err and child may be nil.
func immutable(err error, child *childwatch.Child) bool {
	return child != nil && apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "updates to "))
}

// conclude notes a child that is as desired. known is its entry if nothing was written.
func (x *run) conclude(ctx context.Context, w *handler.Wanted, child *childwatch.Child, known *children.Entry) {
	e := children.Entry{
		Key: w.Key, UID: children.Short(child.UID), Stamp: child.Stamp, Content: child.Content, Digest: w.Digest,
		Wave: w.Wave, Outside: w.Outside, Orphan: w.Orphan, Last: w.PruneLast,
	}
	if known != nil && w.CreateOnly {
		e.Stamp, e.Digest = known.Stamp, known.Digest // they do not count
	}
	if known != nil { // of an earlier version: a missing hash is no reason for a write
		e.Content = known.Content
	}
	x.put(e)
	ready, failed, message := Ready(w, child.Readiness, x.Content(ctx, x.Owner.Namespace, child))
	x.ready[w] = ready
	switch {
	case w.Problem != nil:
		x.fail("ReadFailed", w.Problem)
	case failed && x.result.Failed == "":
		x.result.Failed = w.Key.String() + ": " + message
	case !ready:
		x.wait(w.Key.String() + ": " + message)
	}
}

// Ready reports whether a live child is ready. The message has the reason. builtIn is the
// verdict of the built-in rules. live is called if the declaration has a rule; its error
// becomes the problem of the declaration.
func Ready(w *handler.Wanted, builtIn readiness.Verdict, live handler.Content) (ready, failed bool, message string) {
	if w.Ready != nil {
		body, err := live()
		if err != nil {
			w.Problem = err
			return false, false, err.Error()
		}
		if body.Deleting {
			return false, false, "it is being deleted"
		}
		if !w.Ready(body) {
			if w.Problem != nil {
				return false, false, w.Problem.Error()
			}
			return false, false, "it is not ready"
		}
		return true, false, ""
	}
	return builtIn.State == readiness.Current, builtIn.State == readiness.Failed, builtIn.Message
}

func (x *run) wait(reason string) {
	if x.result.Waiting == "" {
		x.result.Waiting = reason
	}
}

func (x *run) fail(reason string, err error) {
	if len(x.result.Problems) == maxProblems {
		x.result.Others++
		return
	}
	x.result.Problems = append(x.result.Problems, Problem{reason, err})
}

// keep keeps the entry of a child whose state has not changed. known may be nil.
func (x *run) keep(known *children.Entry) {
	if known != nil {
		x.put(*known)
	}
}

func (x *run) put(e children.Entry) {
	if old := x.result.Inventory.Find(e.Key); old != nil {
		*old = e
		return
	}
	x.result.Inventory.Entries = append(x.result.Inventory.Entries, e)
}

// live returns the facts about a child that decisions need. child may be nil.
func (x *run) live(ctx context.Context, child *childwatch.Child) (children.Live, error) {
	if child == nil {
		return children.Live{}, nil
	}
	l := children.Live{Exists: true, UID: child.UID, Stamp: child.Stamp, Content: child.Content, Digest: child.Digest, Deleting: child.Deleting}
	switch {
	case child.BelongsTo(x.Owner.UID, x.Owner.Namespace):
		l.Relation = children.Own
	case child.Controller != "":
		l.Relation = children.OfAnother
	default:
		another, err := x.isOfAnother(ctx, child)
		if err != nil {
			return children.Live{}, err
		}
		if another {
			l.Relation = children.OfAnother
		}
	}
	return l, nil
}

// isOfAnother reports whether another object declares the child, which cannot have an owner
// reference to it. A former object with the name of the owner does not count. The owner of a
// child that outlives it counts until it is deleted.
func (x *run) isOfAnother(ctx context.Context, child *childwatch.Child) (bool, error) {
	if child.Owner == "" {
		return false, nil
	}
	body, err := x.Content(ctx, x.Owner.Namespace, child)()
	if err != nil {
		return false, err
	}
	text, _ := body.Lookup("metadata", "annotations", childwatch.OwnerAnnotation)
	was, _ := text.(string)
	owner, uid, _ := childwatch.ParseOwner(was)
	if owner == (children.Key{APIVersion: x.Owner.Info.APIVersion(), Kind: x.Owner.Info.Kind, Namespace: x.Owner.Namespace, Name: x.Owner.Name}) {
		return false, nil
	}
	return !child.Orphan || x.exists(ctx, owner, uid), nil
}

// exists reports whether an object exists. One that cannot be read counts as existing.
func (x *run) exists(ctx context.Context, k children.Key, uid string) bool {
	info, err := x.info(ctx, x.began, k)
	if _, unknown := err.(*apiclient.UnknownError); unknown {
		return false // a failed discovery of the group is another error
	}
	var body *object.Body
	if err == nil {
		body, err = x.getOne(ctx, x.Owner.Namespace, info, k) // not that of k, which any client may name
	}
	return err != nil || body != nil && body.UID == uid
}

// enter waits until an object may be read for an owner in the namespace. The wait counts as a
// pause, so the turn of the owner keeps no active slot meanwhile; see [kube.WithPauses].
func (r *Runner) enter(ctx context.Context, namespace string) (leave func(), err error) {
	if leave, ok := r.reads.Try(namespace, maxReads); ok {
		return leave, nil
	}
	err = kube.Pause(ctx, func() (err error) {
		leave, err = r.reads.Enter(ctx, namespace, maxReads)
		return err
	})
	return leave, err
}

// read reads a child from the API server, for an owner in the namespace. nil means that it
// does not exist.
func (r *Runner) read(ctx context.Context, namespace string, info kind.Info, k children.Key) (*childwatch.Child, error) {
	leave, err := r.enter(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	body, err := r.get(ctx, info, k)
	if err != nil || body == nil {
		return nil, err
	}
	return r.Store.Read(info, body)
}

// get returns an object from the API server. nil means that it does not exist.
func (r *Runner) get(ctx context.Context, info kind.Info, k children.Key) (*object.Body, error) {
	body, err := r.Objects.Get(ctx, kube.Target{Info: info, Namespace: k.Namespace, Name: k.Name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return body, err
}

// getOne is get within the limit of reads for owners in the namespace.
func (r *Runner) getOne(ctx context.Context, namespace string, info kind.Info, k children.Key) (*object.Body, error) {
	leave, err := r.enter(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.get(ctx, info, k)
}

// Content returns a function that returns the content of a child, for an owner in the namespace.
// It reads the child from the API server if the store has not kept the content.
func (r *Runner) Content(ctx context.Context, namespace string, c *childwatch.Child) handler.Content {
	return func() (*object.Body, error) {
		if kept := c.Body(); kept != nil {
			return kept, nil
		}
		info, err := r.info(ctx, time.Time{}, c.Key)
		var now *object.Body
		if err == nil {
			now, err = r.getOne(ctx, namespace, info, c.Key)
		}
		if err == nil && (now == nil || now.UID != c.UID) {
			err = errors.New("it was deleted, or is another object now") // its events follow
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", c.Key, err)
		}
		return now.WithoutManagedFields().WithType(c.APIVersion, c.Kind), nil
	}
}

// Live reads a child from the API server. nil means that it does not exist.
func (r *Runner) Live(ctx context.Context, k children.Key) (*childwatch.Child, error) {
	info, err := r.info(ctx, time.Time{}, k)
	if err != nil {
		return nil, err
	}
	return r.read(ctx, k.Namespace, info, k)
}

// info returns the resource of an object. since is [apiclient.Lookup.Since].
func (r *Runner) info(ctx context.Context, since time.Time, k children.Key) (kind.Info, error) {
	return r.kinds(since, []children.Entry{{Key: k}}).info(ctx, k)
}
