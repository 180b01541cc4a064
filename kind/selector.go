package kind

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Selector selects resources of a cluster. Create one by [Parse] or by a constructor, and
// narrow it by [Selector.InGroup] and [Selector.InVersion].
//
// Without a version, it selects only the preferred version of each group. [Matching] is
// called for all versions.
type Selector struct {
	group, version opt

	by   by
	name string
	fn   func(Info) bool
}

type opt struct {
	set bool
	is  string
}

func (o opt) matches(s string) bool { return !o.set || o.is == s }

type by int

const (
	byNothing by = iota
	byAnyName
	byKind
	byPlural
	bySingular
	byShortName
	byCategory
	byFunc
	byEverything
)

// Named selects by plural, singular, kind or short name, but not by category.
func Named(name string) Selector { return Selector{by: byAnyName, name: name} }

// Kind selects by the kind in manifests.
func Kind(name string) Selector { return Selector{by: byKind, name: name} }

// Plural selects by the name in URLs.
func Plural(name string) Selector { return Selector{by: byPlural, name: name} }

// Singular selects by the singular name.
func Singular(name string) Selector { return Selector{by: bySingular, name: name} }

// ShortName selects by a short name, such as "po" for pods.
func ShortName(name string) Selector { return Selector{by: byShortName, name: name} }

// Category selects all resources of a category, such as "all".
func Category(name string) Selector { return Selector{by: byCategory, name: name} }

// Everything selects all resources except Kubernetes events.
func Everything() Selector { return Selector{by: byEverything} }

// Matching selects the resources, in all versions, for which fn returns true. It never
// selects Kubernetes events.
func Matching(fn func(Info) bool) Selector { return Selector{by: byFunc, fn: fn} }

// InGroup narrows the selector to one API group. An empty group means the core group.
func (s Selector) InGroup(group string) Selector { s.group = opt{true, group}; return s }

// InVersion narrows the selector to one version, preferred or not.
func (s Selector) InVersion(version string) Selector { s.version = opt{true, version}; return s }

// Group returns the API group of the selector. ok is false if it is not narrowed to one.
func (s Selector) Group() (group string, ok bool) { return s.group.is, s.group.set }

var versioned = regexp.MustCompile(`^[^.]*\.v\d+((alpha|beta)\d+)?(\..*)?$`)

// Parse parses a selector. In all forms, the name may be a plural, a singular, a kind, a
// short name, or "*" for everything:
//
//	pods                       any group; core wins if there are several
//	deployments.apps           name.group
//	cronjobs.v1.batch          name.version.group
//	v1/pods                    the core group
//	apps/deployments           group/name
//	kopf.dev/v1/kopfexamples   group/version/name
func Parse(text string) (Selector, error) {
	parts := strings.Split(text, "/")
	var s Selector
	switch {
	case slices.Contains(parts, ""):
		return s, fmt.Errorf("the resource %q has an empty part; use a form like \"kopf.dev/v1/kopfexamples\", \"v1/pods\" or \"pods\"", text)
	case len(parts) == 1:
		return parseDotted(text), nil
	case len(parts) == 2 && parts[0] == "v1":
		return named(parts[1]).InGroup("").InVersion("v1"), nil
	case len(parts) == 2:
		return named(parts[1]).InGroup(parts[0]), nil
	case len(parts) == 3:
		return named(parts[2]).InGroup(parts[0]).InVersion(parts[1]), nil
	}
	return s, fmt.Errorf("the resource %q has too many parts; use a form like \"kopf.dev/v1/kopfexamples\"", text)
}

func parseDotted(text string) Selector {
	name, rest, dotted := strings.Cut(text, ".")
	if !dotted {
		return named(name)
	}
	if !versioned.MatchString(text) {
		return named(name).InGroup(rest)
	}
	version, group, grouped := strings.Cut(rest, ".")
	s := named(name).InVersion(version)
	if grouped {
		s = s.InGroup(group)
	}
	return s
}

func named(name string) Selector {
	if name == "*" {
		return Everything()
	}
	return Named(name)
}

// Err returns an error if a selector that was not made by [Parse] is invalid.
func (s Selector) Err() error {
	switch {
	case s.by == byNothing:
		return errors.New("the selector names no resources")
	case s.by == byFunc && s.fn == nil:
		return errors.New("the selector has no function")
	case s.by != byFunc && s.by != byEverything && s.name == "":
		return errors.New("the selector has an empty name")
	}
	return nil
}

// Specific reports whether the selector is meant for one resource. Several matches are then
// ambiguous.
func (s Selector) Specific() bool {
	switch s.by {
	case byAnyName, byKind, byPlural, bySingular, byShortName:
		return true
	}
	return false
}

// Matches reports whether the selector matches the resource, regardless of the other
// resources of the cluster.
func (s Selector) Matches(i Info) bool {
	if !s.group.matches(i.Group) || !s.version.matches(i.Version) {
		return false
	}
	if !s.version.set && !i.Preferred && s.by != byFunc {
		return false
	}
	switch s.by {
	case byAnyName:
		return s.name == i.Kind || s.name == i.Plural || s.name == i.Singular || slices.Contains(i.ShortNames, s.name)
	case byKind:
		return s.name == i.Kind
	case byPlural:
		return s.name == i.Plural
	case bySingular:
		return s.name == i.Singular
	case byShortName:
		return slices.Contains(i.ShortNames, s.name)
	case byCategory:
		return slices.Contains(i.Categories, s.name)
	case byEverything:
		return !i.isEvent()
	case byFunc:
		return !i.isEvent() && s.fn(i)
	}
	return false
}

// Select returns the selected resources out of all resources of the cluster. If a specific
// selector matches several, those of the core group win, as in kubectl.
func (s Selector) Select(all []Info) []Info {
	var found, core []Info
	for _, i := range all {
		if s.Matches(i) {
			found = append(found, i)
			if i.Group == "" {
				core = append(core, i)
			}
		}
	}
	if s.Specific() && len(core) > 0 {
		return core
	}
	return found
}

// String returns the selector for messages.
func (s Selector) String() string {
	var name string
	switch s.by {
	case byEverything:
		name = "*"
	case byFunc:
		name = "a function"
	case byCategory:
		name = "category " + s.name
	default:
		name = s.name
	}
	switch {
	case s.group.set && s.version.set && s.group.is == "":
		return s.version.is + "/" + name
	case s.group.set && s.version.set:
		return s.group.is + "/" + s.version.is + "/" + name
	case s.group.set && s.group.is == "":
		return "core/" + name
	case s.group.set:
		return s.group.is + "/" + name
	case s.version.set:
		return name + "." + s.version.is
	}
	return name
}
