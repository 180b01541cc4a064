package owned

import (
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// plan has the watches that each handler needs.
type plan map[*handler.Handler][]childwatch.Watch

// planFor returns the watches that the handlers need. Kinds that the cluster does not
// have are omitted: their watches start when it does.
func planFor(handlers handler.Set, cluster []kind.Info, namespaces map[string]bool) plan {
	wanted := plan{}
	for _, h := range handlers {
		wanted[h] = nil
		for _, o := range h.Reconcile.Owned {
			for _, info := range o.Of.Select(cluster) {
				wanted[h] = append(wanted[h], watchesOf(info, o.Anywhere, namespaces)...)
			}
		}
		for _, of := range h.Reconcile.Watched {
			for _, info := range of.Select(cluster) {
				for _, w := range watchesOf(info, false, namespaces) {
					w.Foreign = true
					wanted[h] = append(wanted[h], w)
				}
			}
		}
	}
	return wanted
}

// watchesOf returns the watches of one kind of children. anywhere means that they may be
// in other namespaces than the served ones.
func watchesOf(info kind.Info, anywhere bool, namespaces map[string]bool) (all []childwatch.Watch) {
	if !info.Namespaced || anywhere {
		return []childwatch.Watch{{Info: info}}
	}
	for namespace := range namespaces {
		all = append(all, childwatch.Watch{Info: info, Namespace: namespace})
	}
	return all
}

// all returns the watches of all handlers. A watch that several handlers need occurs
// several times.
func (p plan) all(handlers handler.Set) (all []childwatch.Watch) {
	for _, h := range handlers {
		all = append(all, p[h]...)
	}
	return all
}
