package metacontroller

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// decoratorExamples add to objects of others.
var decoratorExamples = []example{
	{
		name: "clusteredparent",
		controllers: `
kind: DecoratorController
spec:
  resources:
    - apiVersion: rbac.authorization.k8s.io/v1
      resource: clusterroles
      labelSelector: {matchLabels: {example: $NS}}
      annotationSelector: {matchExpressions: [{key: bind-in, operator: Exists}]}
  attachments: [{apiVersion: rbac.authorization.k8s.io/v1, resource: rolebindings}]
  hooks: {sync: {webhook: {url: $HOOK/sync}}}`,
		hooks: map[string]func(asked) map[string]any{"sync": func(a asked) map[string]any {
			name := a.parent.GetName()
			return map[string]any{"attachments": []any{objectOf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
subjects: [{kind: ServiceAccount, name: default, namespace: %[2]s}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}`, name, a.parent.GetAnnotations()["bind-in"])}}
		}},
		live: func(t *testing.T, z zoo) {
			const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS-%s, labels: {example: $NS}, annotations: {%s: $NS}}, rules: []}"
			z.apply(fmt.Sprintf(role, "not", "other"))
			z.apply(fmt.Sprintf(role, "yes", "bind-in"))
			z.field(bindings, z.ns+"-yes", z.ns+"-yes", "roleRef", "name")
			z.absent(bindings, z.ns, z.ns+"-not")
			z.Delete(t, roles, "", z.ns+"-yes")
			z.WaitGone(t, bindings, z.ns, z.ns+"-yes")
		},
	},
	{
		name: "crd-roles",
		controllers: `
kind: DecoratorController
spec:
  resources: [{apiVersion: apiextensions.k8s.io/v1, resource: customresourcedefinitions, labelSelector: {matchLabels: {example: $NS}}}]
  attachments: [{apiVersion: rbac.authorization.k8s.io/v1, resource: clusterroles, updateStrategy: {method: InPlace}}]
  hooks: {sync: {webhook: {url: $HOOK/sync}}}`,
		hooks: map[string]func(asked) map[string]any{"sync": func(a asked) map[string]any {
			return map[string]any{"attachments": []any{objectOf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s-reader}
rules: [{apiGroups: [%s], resources: [%s], verbs: [get, list, watch]}]`, a.parent.GetLabels()["example"], a.spec("group"), scalar(a.parent, "spec", "names", "plural"))}}
		}},
		live: func(t *testing.T, z zoo) {
			name := "toys" + z.ns[len(z.ns)-5:]
			z.apply(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.zoo.example.com, labels: {example: $NS}}
spec:
  group: zoo.example.com
  names: {plural: %[1]s, singular: %[1]s, kind: Toy%[1]s, listKind: Toy%[1]sList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`, name))
			made := z.Wait(t, roles, "", z.ns+"-reader", func(*unstructured.Unstructured) bool { return true })
			rules, _, _ := unstructured.NestedSlice(made.Object, "rules")
			if got := fmt.Sprint(rules); got != "[map[apiGroups:[zoo.example.com] resources:["+name+"] verbs:[get list watch]]]" {
				t.Errorf("the role has %s", got)
			}
			z.Delete(t, crds, "", name+".zoo.example.com")
			z.WaitGone(t, roles, "", z.ns+"-reader")
		},
	},
	servicePerPod("service-per-pod", V1),
	servicePerPod("service-per-pod-v2", V2),
	{
		name: "status", kinds: []gopftest.Kind{{Plural: "noops", Namespaced: true}},
		controllers: `
kind: DecoratorController
spec:
  resources: [{apiVersion: zoo.example.com/v1, resource: noops}]
  hooks: {sync: {webhook: {url: $HOOK/sync}}}`,
		hooks: map[string]func(asked) map[string]any{"sync": func(a asked) map[string]any {
			return map[string]any{"status": map[string]any{"message": "noop " + a.spec("say")}, "annotations": map[string]any{"seen": "yes"}}
		}},
		live: func(t *testing.T, z zoo) {
			z.apply("{apiVersion: zoo.example.com/v1, kind: Noop, metadata: {name: noop, namespace: $NS}, spec: {say: hello}}")
			z.field("zoo.example.com/v1/noops", "noop", "noop hello", "status", "message")
			z.patch("zoo.example.com/v1/noops", "noop", "{spec: {say: bye}}")
			z.field("zoo.example.com/v1/noops", "noop", "noop bye", "status", "message")
			z.field("zoo.example.com/v1/noops", "noop", "yes", "metadata", "annotations", "seen")
		},
	},
}

// servicePerPod has a Service for each pod of the StatefulSets with an annotation, and puts the
// name of a pod into its labels.
func servicePerPod(name, version string) example {
	return example{
		name: name,
		controllers: fmt.Sprintf(`
kind: DecoratorController
spec:
  resources:
    - apiVersion: apps/v1
      resource: statefulsets
      labelSelector: {matchLabels: {example: $NS}}
      annotationSelector: {matchExpressions: [{key: service-per-pod, operator: Exists}]}
  attachments: [{apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}]
  hooks: {sync: {version: %[1]s, webhook: {url: $HOOK/services}}, finalize: {version: %[1]s, webhook: {url: $HOOK/services}}}
---
kind: DecoratorController
spec:
  resources: [{apiVersion: v1, resource: pods, labelSelector: {matchLabels: {example: $NS}}}]
  hooks: {sync: {version: %[1]s, webhook: {url: $HOOK/pods}}}`, version),
		hooks: map[string]func(asked) map[string]any{
			"pods": func(a asked) map[string]any {
				return map[string]any{"labels": map[string]any{"pod-name": a.parent.GetName()}}
			},
			"services": func(a asked) map[string]any {
				observed, prefix := a.children["Service.v1"], ""
				if version == V2 {
					prefix = a.parent.GetNamespace() + "/"
				}
				list, strange := []any{}, 0
				for i := range a.number("replicas") {
					pod := fmt.Sprint(a.parent.GetName(), "-", i)
					list = append(list, objectOf("{apiVersion: v1, kind: Service, metadata: {name: %[1]s}, spec: {selector: {pod-name: %[1]s}, ports: [{port: 80}]}}", pod))
				}
				for key, o := range observed {
					if key != prefix+o.GetName() {
						strange++ // a wrong key fails the test
					}
				}
				if a.finalizing {
					return map[string]any{"attachments": []any{}, "finalized": len(observed) == 0}
				}
				return map[string]any{"attachments": list, "annotations": map[string]any{"services": fmt.Sprint(len(observed), " ", strange)}}
			},
		},
		live: func(t *testing.T, z zoo) {
			z.apply(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: $NS, labels: {example: $NS}, annotations: {service-per-pod: pod-name}}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, example: $NS}}
    spec: {automountServiceAccountToken: false, containers: [{name: web, image: web}]}`)
			if !z.Real() { // there, the StatefulSet controller creates the pod
				z.apply("{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: $NS, labels: {app: web, example: $NS}}, spec: {containers: [{name: web, image: web}]}}")
			}
			held := func(wanted bool) {
				t.Helper()
				z.Wait(t, stateful, z.ns, "web", func(o *unstructured.Unstructured) bool {
					return slices.Contains(o.GetFinalizers(), "metacontroller.io/decoratorcontroller-"+z.name+"-0") == wanted
				})
			}
			z.field(pods, "web-0", "web-0", "metadata", "labels", "pod-name")
			z.field(stateful, "web", "2 0", "metadata", "annotations", "services")
			z.field(services, "web-1", "web-1", "spec", "selector", "pod-name")
			z.patch(stateful, "web", "{metadata: {annotations: {service-per-pod: null}}}")
			z.WaitGone(t, services, z.ns, "web-1")
			held(false)
			z.patch(stateful, "web", "{metadata: {annotations: {service-per-pod: again}}}")
			z.field(services, "web-1", "web-1", "spec", "selector", "pod-name")
			held(true)
			z.Delete(t, stateful, z.ns, "web")
			z.WaitGone(t, stateful, z.ns, "web")
			z.WaitGone(t, services, z.ns, "web-1")
		},
	}
}
