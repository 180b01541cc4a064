package access

import (
	"slices"
	"strings"
)

// Missing is what is not allowed of one resource.
type Missing struct {
	Group      string
	Resource   string // "pods", "pods/status"
	Name       string // of the only object that is meant; "" is all
	Verbs      []string
	Namespaces []string // where; none is the whole cluster
	By         []string
	Without    string
}

// question is what can be asked about: one verb of one resource.
type question struct {
	verb, group, resource, subresource string
	name                               string // "" for all objects
	namespace                          string // "" for the whole cluster
}

func (n Need) question(verb, namespace string) question {
	return question{verb, n.Info.Group, n.Info.Plural, n.Subresource, n.Name, namespace}
}

// review is what was asked, and answered, about needs.
type review struct {
	needs      []Need
	namespaces []string // those served, sorted; none for the whole cluster
	allowed    map[question]bool
}

// wide are the questions to begin with: those whose answers may make others
// needless.
func (r *review) wide() (questions []question) {
	for _, n := range r.needs {
		for _, verb := range n.Verbs {
			questions = append(questions, n.question(verb, n.In))
		}
	}
	return r.open(questions)
}

// narrow are the questions about single namespaces that remain after the wide
// ones.
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

// isNarrow tells whether it is enough to be allowed in single namespaces.
func (r *review) isNarrow(n Need) bool {
	return n.Info.Namespaced && n.In == "" && len(r.namespaces) > 0
}

// open are those of the questions that were not answered yet, each once.
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

// lacks tells whether something is known not to be allowed.
func (r *review) lacks(q question) bool {
	allowed, asked := r.allowed[q]
	return asked && !allowed && !r.allowed[q.everywhere()]
}

// has tells whether something is known to be allowed.
func (r *review) has(q question) bool { return r.allowed[q] || r.allowed[q.everywhere()] }

func (q question) everywhere() question { q.namespace = ""; return q }

// collect groups the permissions that are needed and meant by the function,
// each once, and returns them one by one, too.
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

// join adds a verb to what is missing for the same need in the same places.
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
