package reconcile

import (
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
)

// The store has all children with the label of the operator. A new child that it does not
// have rarely exists, so it is created without a read. The request fails with a conflict
// if an object of that name exists. Only then, the object is read. See [noVersion].

// readsFirst reports whether a child that the store does not have is read before it is
// created, because it may well exist. known may be nil: a child in the inventory may have
// lost only its label, and its repair must take one write.
func (x *run) readsFirst(w *handler.Wanted, known *children.Entry) bool {
	return x.exist[w] || x.Retry || known != nil || w.AdoptExisting
}

// retract takes back the decision to create a child, because it exists.
func (x *run) retract(w *handler.Wanted) {
	if x.exist == nil {
		x.exist = map[*handler.Wanted]bool{}
	}
	x.exist[w] = true
	x.result.Actions = x.result.Actions[:len(x.result.Actions)-1]
}
