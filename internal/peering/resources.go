package peering

import (
	"slices"

	"gopf.dev/gopf/kind"
)

// The names of the resources of peering objects. The second group is that of
// old installations; where there are both, both are used.
const (
	version           = "v1"
	clusterPlural     = "clusterkopfpeerings"
	namespacedPlural  = "kopfpeerings"
	group, groupOfOld = "kopf.dev", "zalando.org"
)

// Resources are the peering resources among those that a cluster serves:
// cluster-wide ones or namespaced ones.
func Resources(infos []kind.Info, clusterwide bool) []kind.Info {
	plural := namespacedPlural
	if clusterwide {
		plural = clusterPlural
	}
	var found []kind.Info
	for _, g := range []string{group, groupOfOld} {
		i := slices.IndexFunc(infos, func(i kind.Info) bool {
			return i.Group == g && i.Version == version && i.Plural == plural && i.Namespaced != clusterwide
		})
		if i >= 0 {
			found = append(found, infos[i])
		}
	}
	return found
}

// Place is where a peering object may be.
type Place struct {
	Info      kind.Info
	Namespace string // "" for cluster-wide ones
}

// Places are all places in the namespaces; cluster-wide resources have one
// each, whatever the namespaces.
func Places(resources []kind.Info, namespaces []string) []Place {
	var places []Place
	for _, info := range resources {
		if !info.Namespaced {
			places = append(places, Place{Info: info})
			continue
		}
		for _, ns := range namespaces {
			places = append(places, Place{Info: info, Namespace: ns})
		}
	}
	return places
}

// String is the end of a message about the place.
func (p Place) String() string {
	if p.Namespace == "" {
		return "cluster-wide"
	}
	return "in '" + p.Namespace + "'"
}
