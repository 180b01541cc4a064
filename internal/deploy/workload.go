package deploy

import (
	"cmp"
	"maps"
	"slices"
)

// Workload returns the Deployment and the objects around it.
func (m *Model) Workload() (all []map[string]any) {
	all = append(all, m.deployment(), m.metricsService())
	if m.Replicas > 1 {
		all = append(all, object{
			"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": m.meta(m.Name),
			"spec": object{"minAvailable": 1, "selector": object{"matchLabels": m.selector()}},
		})
	}
	all = append(all, m.networkPolicy())
	return append(all, m.webhookObjects()...)
}

// Args returns the arguments of the container.
func (m *Model) Args() []string {
	return slices.Concat([]string{"run"}, m.Options.ScopeFlags(), m.flags)
}

func (m *Model) deployment() object {
	s := m.Operator.Settings
	ports := list{
		object{"name": "health", "containerPort": port(s.Health, healthPort)},
		object{"name": "metrics", "containerPort": port(s.Metrics, metricsPort)},
	}
	if m.served() {
		ports = append(ports, object{"name": "webhook", "containerPort": cmp.Or(s.WebhookPort, webhookPort)})
	}
	var args list
	for _, a := range m.Args() {
		args = append(args, a)
	}
	probe := func(path string, more object) object {
		more["httpGet"] = object{"path": path, "port": "health"}
		return more
	}
	container := object{
		"name": "operator", "image": m.Image, "args": args, "ports": ports,
		"env":            m.environment(),
		"livenessProbe":  probe("/livez", object{"initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 5}),
		"readinessProbe": probe("/readyz", object{"periodSeconds": 10, "timeoutSeconds": 5}),
		"resources":      object{"requests": object{"cpu": "10m", "memory": "64Mi"}, "limits": object{"memory": m.Memory}},
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": list{"ALL"}},
		},
	}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m.meta(m.Name),
		"spec": object{
			"replicas": m.Replicas,
			"selector": object{"matchLabels": m.selector()},
			"template": object{
				"metadata": object{"labels": m.labels()},
				"spec": object{
					"serviceAccountName":            m.Name,
					"terminationGracePeriodSeconds": max(30, s.ExitSeconds+5),
					"securityContext":               object{"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": object{"type": "RuntimeDefault"}},
					"containers":                    list{container},
				},
			},
		},
	}
}

// environment returns the environment variables of the container.
func (m *Model) environment() list {
	all := list{object{"name": "GOMEMLIMIT", "value": m.goMemoryLimit()}, podID()}
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		all = append(all, object{"name": name, "value": m.Env[name]})
	}
	return all
}

// podID is the identity of a replica in the lease.
func podID() object {
	return object{"name": "POD_ID", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}}
}

func (m *Model) metricsService() object {
	return object{
		"apiVersion": "v1", "kind": "Service", "metadata": m.meta(m.Name + "-metrics"),
		"spec": object{
			"selector": m.selector(),
			"ports":    list{object{"name": "metrics", "port": port(m.Operator.Settings.Metrics, metricsPort), "targetPort": "metrics"}},
		},
	}
}

// networkPolicy allows requests to the API server and to DNS, and connections to the
// operator's own ports.
func (m *Model) networkPolicy() object {
	in := list{object{"port": "health", "protocol": "TCP"}, object{"port": "metrics", "protocol": "TCP"}}
	if m.served() {
		in = append(in, object{"port": "webhook", "protocol": "TCP"})
	}
	return object{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": m.meta(m.Name),
		"spec": object{
			"podSelector": object{"matchLabels": m.selector()},
			"policyTypes": list{"Ingress", "Egress"},
			"ingress":     list{object{"ports": in}},
			"egress": list{
				object{"ports": list{object{"port": 443, "protocol": "TCP"}, object{"port": 6443, "protocol": "TCP"}}},
				object{"ports": list{object{"port": 53, "protocol": "UDP"}, object{"port": 53, "protocol": "TCP"}}},
			},
		},
	}
}

// served reports whether the API server reaches webhooks of the operator through a Service.
func (m *Model) served() bool { return m.reviews("") && m.Operator.Settings.WebhookService != "" }

// webhookObjects returns the Service of the webhooks, the Secret for their certificate, and
// empty webhook configurations. The operator fills them in, and therefore needs no
// permission to create any: RBAC cannot limit create to a name.
func (m *Model) webhookObjects() (all []object) {
	s := m.Operator.Settings
	if m.served() {
		meta := m.meta(s.WebhookService)
		meta["namespace"] = cmp.Or(s.WebhookNamespace, m.Namespace)
		all = append(all, object{
			"apiVersion": "v1", "kind": "Service", "metadata": meta,
			"spec": object{"selector": m.selector(), "ports": list{object{"name": "webhook", "port": cmp.Or(s.ServicePort, 443), "targetPort": "webhook"}}},
		})
		if s.WebhookSecret != "" {
			all = append(all, object{"apiVersion": "v1", "kind": "Secret", "metadata": m.meta(s.WebhookSecret), "type": "Opaque"})
		}
	}
	if s.Managed == "" {
		return all
	}
	for family, kind := range map[string]string{"validate": "ValidatingWebhookConfiguration", "mutate": "MutatingWebhookConfiguration"} {
		if m.reviews(family) {
			all = append(all, object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": m.clusterMeta(s.Managed)})
		}
	}
	slices.SortFunc(all, func(a, b object) int { return cmp.Compare(a["kind"].(string), b["kind"].(string)) })
	return all
}
