package rbac

import (
	"slices"
	"strings"
)

// Missing describes missing permissions for one resource.
type Missing struct {
	Group      string
	Resource   string // "pods", "pods/status"
	Name       string // only for this object; empty means all
	Verbs      []string
	Namespaces []string // only in these; empty means the whole cluster
	By         []string
	Without    string
}

// question is the subject of one access review: one verb of one resource.
type question struct {
	verb, group, resource, subresource string
	name                               string // empty means all objects
	namespace                          string // empty means the whole cluster
}

func (n Need) question(verb, namespace string) question {
	return question{verb, n.Info.Group, n.Info.Plural, n.Subresource, n.Name, namespace}
}

// review contains the needs and the access reviews of one round.
type review struct {
	needs      []Need
	namespaces []string // those served, sorted; empty means the whole cluster
	allowed    map[question]bool
}

// wide returns the first questions. Their answers may make narrow ones unnecessary.
func (r *review) wide() (questions []question) {
	for _, n := range r.needs {
		for _, verb := range n.Verbs {
			questions = append(questions, n.question(verb, n.In))
		}
	}
	return r.open(questions)
}

// narrow returns the remaining questions about single namespaces.
func (r *review) narrow() (questions []question) {
	for _, n := range r.needs {
		if !r.isNarrow(n) {
			continue
		}
		for _, verb := range n.Verbs {
			if allowed, asked := r.allowed[n.question(verb, "")]; allowed || !asked {
				continue
			}
			for _, namespace := range r.namespaces {
				questions = append(questions, n.question(verb, namespace))
			}
		}
	}
	return r.open(questions)
}

// isNarrow reports whether permissions in single namespaces are sufficient.
func (r *review) isNarrow(n Need) bool {
	return n.Info.Namespaced && n.In == "" && len(r.namespaces) > 0
}

// open returns the unanswered questions, without duplicates.
func (r *review) open(questions []question) (open []question) {
	seen := map[question]bool{}
	for _, q := range questions {
		if _, answered := r.allowed[q]; !answered && !seen[q] {
			open = append(open, q)
		}
		seen[q] = true
	}
	return open
}

// lacks reports whether a permission is known to be missing.
func (r *review) lacks(q question) bool {
	allowed, asked := r.allowed[q]
	return asked && !allowed && !r.allowed[q.everywhere()]
}

// has reports whether a permission is known to be granted.
func (r *review) has(q question) bool { return r.allowed[q] || r.allowed[q.everywhere()] }

func (q question) everywhere() question { q.namespace = ""; return q }

// collect returns the needed permissions for which meant returns true, without
// duplicates: grouped, and as a set.
func (r *review) collect(meant func(question) bool) (all []Missing, each map[question]bool) {
	each = map[question]bool{}
	for _, n := range r.needs {
		first := len(all)
		places := []string{n.In}
		if r.isNarrow(n) {
			places = r.namespaces
		}
		for _, verb := range n.Verbs {
			var where []string
			for _, place := range places {
				if q := n.question(verb, place); meant(q) && !each[q] {
					each[q] = true
					where = append(where, place)
				}
			}
			all = join(all, first, n, verb, where)
		}
	}
	return all, each
}

// join adds a verb to the entry for the same need and places.
func join(all []Missing, first int, n Need, verb string, where []string) []Missing {
	if len(where) == 0 {
		return all
	}
	if where[0] == "" {
		where = nil
	}
	for i := range all[first:] {
		if m := &all[first+i]; slices.Equal(m.Namespaces, where) {
			m.Verbs = append(m.Verbs, verb)
			return all
		}
	}
	resource := strings.TrimSuffix(n.Info.Plural+"/"+n.Subresource, "/")
	return append(all, Missing{
		Group: n.Info.Group, Resource: resource, Name: n.Name, Verbs: []string{verb}, Namespaces: where, By: n.By, Without: n.Without,
	})
}
