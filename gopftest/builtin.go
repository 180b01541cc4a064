package gopftest

// builtin is a well-known kind and how the real server treats it.
type builtin struct {
	Kind

	// generation enables metadata.generation. Kinds without a desired state, such
	// as config maps, have none.
	generation bool

	// locked requires that updates name the resourceVersion they replace.
	locked bool

	// custom marks a kind that is served as a custom resource with a definition.
	// Only its names are known here.
	custom bool

	// fields are the field selectors besides name and namespace.
	fields []string

	// scales enables the scale subresource.
	scales bool

	// always serves the kind in every cluster.
	always bool
}

func lookupBuiltin(match func(*builtin) bool) (*builtin, bool) {
	for _, b := range builtins() {
		if match(&b) {
			return &b, true
		}
	}
	return nil, false
}

// builtins returns the well-known kinds. It is a function because the package has no
// globals; it runs only when kinds are defined.
func builtins() []builtin {
	// n: namespaced, c: cluster-wide; s: with a status subresource.
	n := func(group, version, plural, kind string, short ...string) Kind {
		return Kind{Group: group, Version: version, Plural: plural, Kind: kind, ShortNames: short, Namespaced: true}
	}
	c := func(group, version, plural, kind string, short ...string) Kind { //nolint:unparam // it reads like the name of a resource
		return Kind{Group: group, Version: version, Plural: plural, Kind: kind, ShortNames: short}
	}
	s := func(k Kind) Kind { k.StatusSubresource = true; return k }
	in := func(category string, k Kind) Kind { k.Categories = append(k.Categories, category); return k }
	all := func(k Kind) Kind { return in("all", k) }

	const (
		admission = "admissionregistration.k8s.io"
		rbac      = "rbac.authorization.k8s.io"
	)
	references := []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
		"reason", "reportingComponent", "source", "type"}
	return []builtin{
		{Kind: s(c("", "v1", "namespaces", "Namespace", "ns")), fields: []string{"status.phase"}, always: true},
		{Kind: n("", "v1", "events", "Event", "ev"), fields: references, always: true},
		{Kind: n("events.k8s.io", "v1", "events", "Event", "ev"), always: true},
		{Kind: n("coordination.k8s.io", "v1", "leases", "Lease"), locked: true, always: true},
		{Kind: in("api-extensions", s(c("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "crd", "crds"))),
			generation: true, locked: true, always: true},

		{Kind: all(s(n("", "v1", "pods", "Pod", "po"))), generation: true,
			fields: []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP"}},
		{Kind: all(s(n("", "v1", "services", "Service", "svc"))), fields: []string{"spec.clusterIP", "spec.type"}},
		{Kind: all(s(n("", "v1", "replicationcontrollers", "ReplicationController", "rc"))), generation: true, scales: true, fields: []string{"status.replicas"}},
		{Kind: n("", "v1", "configmaps", "ConfigMap", "cm")},
		{Kind: n("", "v1", "secrets", "Secret"), fields: []string{"type"}},
		{Kind: n("", "v1", "serviceaccounts", "ServiceAccount", "sa")},
		{Kind: n("", "v1", "endpoints", "Endpoints", "ep")},
		{Kind: s(n("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc"))},
		{Kind: s(c("", "v1", "persistentvolumes", "PersistentVolume", "pv"))},
		{Kind: s(n("", "v1", "resourcequotas", "ResourceQuota", "quota"))},
		{Kind: n("", "v1", "limitranges", "LimitRange", "limits")},
		{Kind: n("", "v1", "podtemplates", "PodTemplate"), generation: true},
		{Kind: s(c("", "v1", "nodes", "Node", "no")), fields: []string{"spec.unschedulable"}},

		{Kind: all(s(n("apps", "v1", "deployments", "Deployment", "deploy"))), generation: true, scales: true},
		{Kind: all(s(n("apps", "v1", "replicasets", "ReplicaSet", "rs"))), generation: true, scales: true, fields: []string{"status.replicas"}},
		{Kind: all(s(n("apps", "v1", "statefulsets", "StatefulSet", "sts"))), generation: true, scales: true},
		{Kind: all(s(n("apps", "v1", "daemonsets", "DaemonSet", "ds"))), generation: true},
		{Kind: n("apps", "v1", "controllerrevisions", "ControllerRevision")},
		{Kind: all(s(n("batch", "v1", "jobs", "Job"))), generation: true, fields: []string{"status.successful"}},
		{Kind: all(s(n("batch", "v1", "cronjobs", "CronJob", "cj"))), generation: true},
		{Kind: all(s(n("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa")))},
		{Kind: s(n("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb")), generation: true},
		{Kind: s(n("networking.k8s.io", "v1", "ingresses", "Ingress", "ing")), generation: true},
		{Kind: c("networking.k8s.io", "v1", "ingressclasses", "IngressClass"), generation: true},
		{Kind: n("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol"), generation: true},
		{Kind: n("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"), generation: true},
		{Kind: c("storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc")},
		{Kind: c("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc")},
		{Kind: n(rbac, "v1", "roles", "Role")},
		{Kind: n(rbac, "v1", "rolebindings", "RoleBinding")},
		{Kind: c(rbac, "v1", "clusterroles", "ClusterRole")},
		{Kind: c(rbac, "v1", "clusterrolebindings", "ClusterRoleBinding")},
		{Kind: in("api-extensions", c(admission, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration")), generation: true, always: true},
		{Kind: in("api-extensions", c(admission, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")), generation: true, always: true},

		{Kind: all(s(n("kopf.dev", "v1", "kopfexamples", "KopfExample", "kopfexes", "kopfex", "kexes", "kex"))), custom: true},
		{Kind: n("kopf.dev", "v1", "kopfpeerings", "KopfPeering"), custom: true},
		{Kind: c("kopf.dev", "v1", "clusterkopfpeerings", "ClusterKopfPeering"), custom: true},
	}
}
