package peering

import (
	"slices"

	"gopf.dev/gopf/kind"
)

// Names of the peering resources. The second group is that of old installations. If the
// cluster has both, both are used.
const (
	version           = "v1"
	clusterPlural     = "clusterkopfpeerings"
	namespacedPlural  = "kopfpeerings"
	group, groupOfOld = "kopf.dev", "zalando.org"
)

// Resources returns the peering resources among infos: the cluster-wide or the
// namespaced ones.
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

// Place is a possible location of a peering object.
type Place struct {
	Info      kind.Info
	Namespace string // empty for cluster-wide resources
}

// Places returns all places in the namespaces. A cluster-wide resource has one place,
// whatever the namespaces.
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

// String returns the place for the end of a message.
func (p Place) String() string {
	if p.Namespace == "" {
		return "cluster-wide"
	}
	return "in '" + p.Namespace + "'"
}
