package gopftest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind describes one version of a kind for [Cluster.Define]. Group, Version and Plural
// are required. Kind and Singular are derived from Plural if empty.
type Kind struct {
	Group, Version, Plural string

	Kind, Singular string
	ShortNames     []string
	Categories     []string

	// Namespaced reports whether objects belong to namespaces. Otherwise they are
	// cluster-scoped.
	Namespaced bool

	// StatusSubresource separates the status from the rest: it can then be written
	// only through /status.
	StatusSubresource bool
}

func (k Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

func (k Kind) apiVersion() string {
	return schema.GroupVersion{Group: k.Group, Version: k.Version}.String()
}

// parseKind parses "group/version/plural", "version/plural" for the core group, or the
// bare plural of a well-known kind. The table of well-known kinds provides the rest.
// Other kinds are namespaced, have a status subresource, and a kind guessed from the plural.
func parseKind(name string) (Kind, error) {
	parts := strings.Split(name, "/")
	var k Kind
	switch len(parts) {
	case 1:
		if b, ok := lookupBuiltin(func(b *builtin) bool { return b.Plural == name }); ok {
			return b.Kind, nil
		}
		return k, fmt.Errorf("resource %q: not a well-known kind; use the form group/version/plural", name)
	case 2:
		k = Kind{Version: parts[0], Plural: parts[1]}
	case 3:
		k = Kind{Group: parts[0], Version: parts[1], Plural: parts[2]}
	default:
		return k, fmt.Errorf("resource %q: use the form group/version/plural", name)
	}
	if k.Version == "" || k.Plural == "" {
		return k, fmt.Errorf("resource %q: version or plural is empty", name)
	}
	if b, ok := lookupBuiltin(func(b *builtin) bool { return b.groupResource() == k.groupResource() }); ok {
		known := b.Kind
		known.Version = k.Version
		return known, nil
	}
	k.Namespaced, k.StatusSubresource = true, true
	return k, nil
}

// named returns k with the missing names filled in.
func (k Kind) named() Kind {
	if k.Singular == "" {
		k.Singular = singular(k.Plural)
	}
	if k.Kind == "" {
		k.Kind = capitalized(k.Singular)
	}
	return k
}

// singular reverses the usual English plural.
func singular(plural string) string {
	for _, es := range []string{"sses", "xes", "ches", "shes"} {
		if strings.HasSuffix(plural, es) {
			return strings.TrimSuffix(plural, "es")
		}
	}
	if s, ok := strings.CutSuffix(plural, "ies"); ok {
		return s + "y"
	}
	return strings.TrimSuffix(plural, "s")
}

// capitalized guesses the kind from a singular name.
func capitalized(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
