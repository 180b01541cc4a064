package permissions

import "strings"

// builtInKinds has the resources of Kubernetes that operators use, as "PLURAL" lists by
// group. An asterisk marks cluster-scoped resources, a slash those without a status.
var builtInKinds = map[string]string{
	"": "pods services replicationcontrollers persistentvolumeclaims resourcequotas " +
		"configmaps/ secrets/ serviceaccounts/ endpoints/ limitranges/ podtemplates/ events/ namespaces* nodes* persistentvolumes*",
	"apps":                         "deployments statefulsets daemonsets replicasets controllerrevisions/",
	"batch":                        "jobs cronjobs",
	"autoscaling":                  "horizontalpodautoscalers",
	"policy":                       "poddisruptionbudgets",
	"networking.k8s.io":            "ingresses networkpolicies/ ingressclasses*/",
	"coordination.k8s.io":          "leases/",
	"discovery.k8s.io":             "endpointslices/",
	"events.k8s.io":                "events/",
	"rbac.authorization.k8s.io":    "roles/ rolebindings/ clusterroles*/ clusterrolebindings*/",
	"storage.k8s.io":               "storageclasses*/ volumeattachments* csidrivers*/ csinodes*/ csistoragecapacities/",
	"scheduling.k8s.io":            "priorityclasses*/",
	"node.k8s.io":                  "runtimeclasses*/",
	"certificates.k8s.io":          "certificatesigningrequests*",
	"apiextensions.k8s.io":         "customresourcedefinitions*",
	"apiregistration.k8s.io":       "apiservices*",
	"admissionregistration.k8s.io": "validatingwebhookconfigurations*/ mutatingwebhookconfigurations*/ validatingadmissionpolicies* validatingadmissionpolicybindings*/",
}

// builtIn returns the facts about a resource of Kubernetes.
func builtIn(group, plural string) (Kind, bool) {
	for _, word := range strings.Fields(builtInKinds[group]) {
		if strings.TrimRight(word, "*/") == plural {
			return Kind{Namespaced: !strings.Contains(word, "*"), Status: !strings.HasSuffix(word, "/")}, true
		}
	}
	return Kind{}, false
}

// BuiltIn reports whether the resource is one of Kubernetes. It is pure.
func BuiltIn(group, plural string) bool {
	_, ok := builtIn(group, plural)
	return ok
}

// coreName returns the resource for a plural without a group, such as "pods". The core group
// wins, as in the running operator. Other names must be unique among those of Kubernetes.
func coreName(plural string) (group, name string, ok bool) {
	if _, ok := builtIn("", plural); ok {
		return "", plural, true
	}
	for other := range builtInKinds {
		if _, found := builtIn(other, plural); found {
			if ok {
				return "", "", false
			}
			group, ok = other, true
		}
	}
	return group, plural, ok
}
