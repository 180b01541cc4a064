package gopftest

import (
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// resource is one kind in all of its versions, and the rules for it. It is immutable
// once registered; changes replace it.
type resource struct {
	Kind // Version is the storage version

	versions []*servedVersion // in the order of discovery
	builtin  *builtin         // nil means a custom resource
	crd      string           // name of the definition, if it is a custom resource

	// terminating means that the definition is being deleted: new objects are rejected.
	terminating bool

	// derivedKind means that the kind was guessed from the plural. The first object
	// corrects the spelling.
	derivedKind bool
}

// servedVersion holds the properties of one version of a resource.
type servedVersion struct {
	name   string
	status bool
	scale  *scalePaths    // nil means no scale subresource
	schema *versionSchema // nil means no schema
	fields []string       // dotted paths usable in field selectors
	table  *tableLayout

	published *apiextensionsv1.JSONSchemaProps // the schema in the definition; nil means a well-known kind
}

func (r *resource) version(name string) (*servedVersion, bool) {
	for _, v := range r.versions {
		if v.name == name {
			return v, true
		}
	}
	return nil, false
}

// custom reports whether the resource is a custom resource.
func (r *resource) custom() bool { return r.builtin == nil }

// counts reports whether objects have a metadata.generation.
func (r *resource) counts() bool { return r.custom() || r.builtin.generation }

// servedKinds is the registry of the resources that are served now.
type servedKinds struct {
	mu        sync.RWMutex
	resources []*resource
}

// put adds the resource, or replaces the one of the same name.
func (r *servedKinds) put(res *resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(res.versions, func(a, b *servedVersion) int {
		return -version.CompareKubeAwareVersionStrings(a.name, b.name)
	})
	for i, old := range r.resources {
		if old.groupResource() == res.groupResource() {
			r.resources[i] = res
			return
		}
	}
	r.resources = append(r.resources, res)
}

func (r *servedKinds) remove(gr schema.GroupResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resources = slices.DeleteFunc(slices.Clone(r.resources), func(res *resource) bool { return res.groupResource() == gr })
}

func (r *servedKinds) all() []*resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.resources)
}

func (r *servedKinds) find(match func(*resource) bool) (*resource, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if i := slices.IndexFunc(r.resources, match); i >= 0 {
		return r.resources[i], true
	}
	return nil, false
}

func (r *servedKinds) byName(gr schema.GroupResource) (*resource, bool) {
	return r.find(func(res *resource) bool { return res.groupResource() == gr })
}

// byKind returns the resource of a kind. Kinds whose spelling was guessed match in any
// spelling.
func (r *servedKinds) byKind(gk schema.GroupKind) (*resource, bool) {
	return r.find(func(res *resource) bool {
		return res.Group == gk.Group && (res.Kind.Kind == gk.Kind || res.derivedKind && strings.EqualFold(res.Kind.Kind, gk.Kind))
	})
}

// byText returns the resource that a test names: "group/version/plural",
// "version/plural", "plural.group", or a plural, singular, short name or kind.
func (r *servedKinds) byText(text string) (*resource, string, bool) {
	if parts := strings.Split(text, "/"); len(parts) > 1 {
		k := Kind{Version: parts[len(parts)-2], Plural: parts[len(parts)-1]}
		if len(parts) == 3 {
			k.Group = parts[0]
		}
		res, ok := r.byName(k.groupResource())
		return res, k.Version, ok
	}
	res, ok := r.find(func(res *resource) bool {
		return text == res.Plural || text == res.groupResource().String() || text == res.Singular || text == res.Kind.Kind ||
			slices.Contains(res.ShortNames, text)
	})
	if !ok {
		return nil, "", false
	}
	return res, res.Version, true
}
