package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// prune deletes the children that are not desired: those in the inventory, and those that
// the store shows as applied by the operator for this owner. Labels never decide.
func (x *run) prune(ctx context.Context, desired []children.Desired) {
	known := slices.Clone(x.Inventory.Entries)
	if x.Alone { // otherwise, a child may belong to another handler whose inventory is lost
		known = append(known, x.Unlisted(x.Owner, known)...)
	}
	if !x.Prune {
		for _, e := range known {
			if !e.Stray && x.result.Inventory.Find(e.Key) == nil && !slices.ContainsFunc(desired, func(d children.Desired) bool { return d.Key == e.Key }) {
				x.put(e)
			}
		}
		return
	}
	allReady := x.result.Waiting == "" && x.result.Failed == "" && len(x.result.Problems) == 0
	if n := strays(known); n > maxStrays && (x.result.Again == 0 || x.result.Again > strayPause) {
		x.result.Again = strayPause
	}
	left, blocking, err := x.deleteInWaves(ctx, x.Owner, known, desired, allReady, func(e children.Entry) {
		x.result.Written++
		x.result.Actions = append(x.result.Actions, children.Action{Key: e.Key, Verb: children.Delete, Reason: e.Key.String() + " is no longer declared"})
	})
	for _, e := range left {
		x.put(e)
	}
	if err != nil {
		x.fail("PruneFailed", err)
	} else if blocking != nil {
		x.wait(fmt.Sprintf("%s is being deleted", blocking.Key))
	}
}

// Unlisted returns the known children of an owner that are not in its inventory, for
// example because another client has removed the inventory. It returns no more of them than an
// inventory can have.
//
// A client can create objects with the marks of children and the field manager of the
// operator. In the namespace of the owner, it could edit the owner as well. In other
// namespaces, such strays are deleted, but the owner does not wait for them.
func (r *Runner) Unlisted(owner Owner, inventory []children.Entry) (found []children.Entry) {
	listed := make(map[children.Key]bool, len(inventory))
	for _, e := range inventory {
		listed[e.Key] = true
	}
	var strays []children.Entry
	for _, c := range r.Store.Applied(owner.UID, owner.Namespace, children.MaxEntries+len(inventory)) {
		stray := c.Namespace != "" && c.Namespace != owner.Namespace
		if listed[c.Key] || !c.BelongsTo(owner.UID, owner.Namespace) {
			continue
		}
		e := children.Entry{Key: c.Key, UID: children.Short(c.UID), Outside: c.Controller == "", Stray: stray}
		if stray {
			strays = append(strays, e)
		} else {
			found = append(found, e)
		}
	}
	found = append(found, strays...)
	return found[:min(len(found), max(0, children.MaxEntries-len(inventory)))]
}

// Teardown deletes the children of an owner that is being deleted, in waves. done means
// that none is left. Otherwise, blocking is a child whose deletion takes time, or that cannot
// be read; nil means that another request failed.
func (r *Runner) Teardown(ctx context.Context, owner Owner, known []children.Entry) (done bool, blocking *children.Entry, err error) {
	left, blocking, err := r.deleteInWaves(ctx, owner, known, nil, true, func(children.Entry) {})
	return len(left) == 0 && err == nil, blocking, err
}

// deleteInWaves deletes the children that are not desired, those of the highest wave
// first. The next wave starts when all of them are gone. It returns the entries that are
// not gone yet, and one of those whose deletion takes time, or that cannot be read. deleted is
// called for each deletion that was requested.
func (r *Runner) deleteInWaves(ctx context.Context, owner Owner, known []children.Entry, desired []children.Desired, allReady bool, deleted func(children.Entry)) (left []children.Entry, blocking *children.Entry, err error) {
	undesired := slices.DeleteFunc(slices.Clone(known), func(e children.Entry) bool {
		return e.Orphan || slices.ContainsFunc(desired, func(d children.Desired) bool { return d.Key == e.Key })
	})
	if len(undesired) == 0 { // as in most calls
		return nil, nil, nil
	}
	kinds := r.kinds(time.Now(), undesired)
	undesired, err = r.deleteStrays(ctx, kinds, owner, undesired, deleted)
	if err != nil {
		return undesired, nil, err
	}
	found := map[children.Key]*childwatch.Child{}
	for _, e := range undesired {
		child, err := r.findOwn(ctx, kinds, owner, e)
		if err != nil {
			return undesired, &e, err
		}
		if child != nil {
			found[e.Key] = child
		}
	}
	exists := func(e children.Entry) bool { return found[e.Key] != nil }
	for {
		now, rest := children.Prune(undesired, desired, exists, allReady)
		if len(now) == 0 {
			return rest, nil, nil
		}
		for _, e := range now {
			child := found[e.Key]
			if !child.Deleting {
				info, err := kinds.info(ctx, e.Key)
				if err == nil {
					err = r.remove(ctx, info, child)
				}
				if err != nil {
					return append(now, rest...), nil, fmt.Errorf("delete %s: %w", e.Key, err)
				}
				deleted(e)
			}
			if child.Deleting || child.Slow() {
				blocking = &e
			} else {
				delete(found, e.Key)
			}
		}
		if blocking != nil {
			return append(slices.DeleteFunc(now, func(e children.Entry) bool { return !exists(e) }), rest...), blocking, nil
		}
	}
}

const (
	// maxStrays limits the strays that are deleted in one turn. Clients in other namespaces
	// can create any number of them, and the owner must not wait for their deletion.
	maxStrays = 20
	// strayPause is the delay until more of them are deleted.
	strayPause = 10 * time.Second
)

// strays returns the number of strays among the entries.
func strays(entries []children.Entry) (n int) {
	for _, e := range entries {
		if e.Stray {
			n++
		}
	}
	return n
}

// deleteStrays deletes up to [maxStrays] strays, and does not wait for them. It returns the
// other entries. A stray that the API server refuses to delete stays: a policy of the cluster
// may let tenants protect their objects, and the owner must not depend on that.
func (r *Runner) deleteStrays(ctx context.Context, kinds *kinds, owner Owner, undesired []children.Entry, deleted func(children.Entry)) (others []children.Entry, err error) {
	requests := 0
	for _, e := range undesired {
		if !e.Stray {
			others = append(others, e)
			continue
		}
		if requests == maxStrays {
			continue
		}
		child := r.Store.Find(e.Key)
		gone := child == nil || child.Deleting || e.UID != children.Short(child.UID) || !child.BelongsTo(owner.UID, owner.Namespace)
		if err != nil || gone {
			continue
		}
		requests++
		info, failure := kinds.info(ctx, e.Key)
		if failure == nil {
			failure = r.remove(ctx, info, child)
		}
		switch _, refused := kube.Refused(failure); {
		case failure == nil:
			deleted(e)
		case !refused || kube.Unavailable(failure):
			err = fmt.Errorf("delete %s: %w", e.Key, failure)
		}
	}
	return others, err
}

// findOwn returns the live child of an entry. nil means that it is gone: the object of
// that name, if there is one, belongs to another owner, or another client has created it
// again. An inventory may be forged, so an entry alone is no reason to delete an object, and
// an entry that no object can have is no reason to wait.
//
// If the operator itself has created the child again, but crashed before it saved the new
// uid, that child is meant.
func (r *Runner) findOwn(ctx context.Context, kinds *kinds, owner Owner, e children.Entry) (*childwatch.Child, error) {
	child := r.Store.Find(e.Key)
	if child == nil {
		info, err := kinds.info(ctx, e.Key)
		if _, missing := err.(*apiclient.UnknownError); missing {
			return nil, nil // without the kind, there is no object of it; a failed discovery is another error
		}
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", e.Key, err)
		}
		if _, err := (kube.Target{Info: info, Namespace: e.Namespace, Name: e.Name}).Path(); err != nil {
			return nil, nil //nolint:nilerr // the API server has no object with such a name
		}
		child, err = r.read(ctx, owner.Namespace, info, e.Key)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Key, err)
		}
		if child == nil {
			return nil, nil
		}
	}
	if !child.BelongsTo(owner.UID, owner.Namespace) || e.UID != "" && e.UID != children.Short(child.UID) && !child.Applied {
		return nil, nil
	}
	return child, nil
}

// kinds finds the resources of entries. All entries together cause at most one discovery: an
// inventory may be forged, with thousands of kinds that do not exist.
type kinds struct{ apiclient.Lookup }

// kinds returns a lookup for the entries. since is [apiclient.Lookup.Since].
func (r *Runner) kinds(since time.Time, entries []children.Entry) *kinds {
	k := &kinds{apiclient.Lookup{Objects: r.Objects, Since: since}}
	for _, e := range entries {
		if gv, err := schema.ParseGroupVersion(e.APIVersion); err == nil {
			k.Kinds = append(k.Kinds, gv.WithKind(e.Kind))
		}
	}
	return k
}

// info returns the resource of an entry. A malformed API version is unknown.
func (k *kinds) info(ctx context.Context, of children.Key) (kind.Info, error) {
	gv, err := schema.ParseGroupVersion(of.APIVersion)
	if err != nil {
		return kind.Info{}, &apiclient.UnknownError{Name: of.Kind + " of " + of.APIVersion}
	}
	info, err := k.ByKind(ctx, gv.WithKind(of.Kind))
	if _, missing := err.(*apiclient.UnknownError); missing {
		for _, other := range k.Objects.Known() {
			if other.Group == gv.Group && other.Kind == of.Kind {
				return other, nil // the version of the inventory is no longer served
			}
		}
	}
	return info, err
}

// remove requests the deletion of exactly this child. If the deletion takes no time, the
// child leaves the store at once.
func (r *Runner) remove(ctx context.Context, info kind.Info, c *childwatch.Child) error {
	r.Store.Sending(c.Key)
	err := r.Objects.Delete(ctx, kube.Target{Info: info, Namespace: c.Namespace, Name: c.Name}, kube.DeleteOptions{UID: c.UID})
	if err != nil {
		r.Store.Sent(c.Key, nil) // the error leads to another turn
		return err
	}
	r.Store.Dropped(c)
	return nil
}
