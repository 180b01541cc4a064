package metacontroller

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// composite returns a CompositeController with a generated selector.
func composite(parent, children string) string {
	return fmt.Sprintf(`
kind: CompositeController
spec:
  generateSelector: true
  parentResource: {apiVersion: zoo.example.com/v1, resource: %s}
  childResources: [%s]
  hooks: {sync: {webhook: {url: $HOOK/sync}}}`, parent, children)
}

const inPlaceConfigMaps = "{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}"

// compositeExamples have children that follow from the parent alone.
var compositeExamples = []example{
	{
		name: "thing", kinds: []gopftest.Kind{{Plural: "greetings", Namespaced: true}},
		controllers: composite("greetings", "{apiVersion: v1, resource: pods, updateStrategy: {method: Recreate}}"),
		hooks: map[string]func(asked) map[string]any{"sync": func(a asked) map[string]any {
			pod := objectOf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  automountServiceAccountToken: false
  containers: [{name: hello, image: hello, env: [{name: WHO, value: %s}]}]`, a.parent.GetName(), a.spec("who"))
			return children(map[string]any{"pods": len(a.children["Pod.v1"])}, pod)
		}},
		live: func(t *testing.T, z zoo) {
			z.apply("{apiVersion: zoo.example.com/v1, kind: Greeting, metadata: {name: hello, namespace: $NS}, spec: {who: Alice}}")
			z.field("zoo.example.com/v1/greetings", "hello", "1", "status", "pods")
			first := z.Get(t, pods, z.ns, "hello").GetUID()
			z.patch("zoo.example.com/v1/greetings", "hello", "{spec: {who: Bob}}")
			z.Wait(t, pods, z.ns, "hello", func(o *unstructured.Unstructured) bool { return o.GetUID() != first })
			if !z.Real() { // the garbage collector learns of new kinds only twice a minute
				z.Delete(t, "zoo.example.com/v1/greetings", z.ns, "hello")
				z.WaitGone(t, pods, z.ns, "hello")
			}
		},
	},
	{
		name: "bluegreen", kinds: []gopftest.Kind{{Plural: "bluegreens", Kind: "BlueGreen", Namespaced: true}},
		controllers: composite("bluegreens", `
    {apiVersion: v1, resource: services, updateStrategy: {method: InPlace}},
    {apiVersion: apps/v1, resource: replicasets, updateStrategy: {method: InPlace}}`),
		hooks: map[string]func(asked) map[string]any{"sync": blueGreen},
		live: func(t *testing.T, z zoo) {
			const parents = "zoo.example.com/v1/bluegreens"
			z.apply("{apiVersion: zoo.example.com/v1, kind: BlueGreen, metadata: {name: web, namespace: $NS}, spec: {replicas: 2, image: 'web:1'}}")
			z.field(services, "web", "blue", "spec", "selector", "color")
			z.available("web-blue", "blue")
			z.patch(parents, "web", "{spec: {image: 'web:2'}}")
			z.Wait(t, replicasets, z.ns, "web-green", func(o *unstructured.Unstructured) bool { return image(o) == "web:2" })
			if got := scalar(z.Get(t, services, z.ns, "web"), "spec", "selector", "color"); got != "blue" {
				t.Errorf("the Service selects %s before green is available", got)
			}
			z.available("web-green", "green")
			z.field(services, "web", "green", "spec", "selector", "color")
			z.field(replicasets, "web-blue", "0", "spec", "replicas")
			z.field(parents, "web", "green", "status", "active")
		},
	},
	{
		name: "catset", kinds: []gopftest.Kind{{Plural: "orderedcats", Kind: "OrderedCat", Namespaced: true}},
		controllers: `
kind: CompositeController
spec:
  parentResource: {apiVersion: zoo.example.com/v1, resource: orderedcats}
  childResources:
    - {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate, statusChecks: {conditions: [{type: Ready, status: "True"}]}}}
    - {apiVersion: v1, resource: persistentvolumeclaims}
  hooks: {sync: {webhook: {url: $HOOK/sync}}, finalize: {webhook: {url: $HOOK/sync}}}`,
		hooks: map[string]func(asked) map[string]any{"sync": orderedCats},
		live: func(t *testing.T, z zoo) {
			const parents = "zoo.example.com/v1/orderedcats"
			z.apply(`
apiVersion: zoo.example.com/v1
kind: OrderedCat
metadata: {name: cats, namespace: $NS}
spec: {replicas: 2, image: 'cat:1', selector: {matchLabels: {app: cats}}, template: {metadata: {labels: {app: cats}}}}`)
			exists := func(*unstructured.Unstructured) bool { return true }
			z.Wait(t, pods, z.ns, "cat-0", exists)
			z.field(parents, "cats", "1", "status", "cats")
			z.absent(pods, z.ns, "cat-1")
			z.ready("cat-0")
			z.Wait(t, pods, z.ns, "cat-1", exists)
			z.ready("cat-1")
			before := z.uids(pods, "cat-0", "cat-1")
			z.patch(parents, "cats", "{spec: {image: 'cat:2'}}")
			for _, name := range []string{"cat-0", "cat-1"} {
				z.Wait(t, pods, z.ns, name, func(o *unstructured.Unstructured) bool { return o.GetUID() != before[name] })
				z.ready(name)
			}
			z.Delete(t, parents, z.ns, "cats")
			z.WaitGone(t, parents, z.ns, "cats")
			z.WaitGone(t, pods, z.ns, "cat-0")
		},
	},
	{
		name: "daemonjob", kinds: []gopftest.Kind{{Plural: "daemonjobs", Kind: "DaemonJob", Namespaced: true}},
		controllers: composite("daemonjobs", "{apiVersion: apps/v1, resource: daemonsets, updateStrategy: {method: InPlace}}"),
		hooks:       map[string]func(asked) map[string]any{"sync": daemonJob},
		live: func(t *testing.T, z zoo) {
			z.apply("{apiVersion: zoo.example.com/v1, kind: DaemonJob, metadata: {name: pull, namespace: $NS}, spec: {image: pull}}")
			if !z.Real() { // the DaemonSet controller of a real control plane counts 0 of 0 nodes
				z.Wait(t, daemonsets, z.ns, "pull", func(o *unstructured.Unstructured) bool { return metav1.GetControllerOf(o) != nil })
				z.PatchStatus(t, daemonsets, z.ns, "pull", objectOf("{status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 2}}"))
				z.field("zoo.example.com/v1/daemonjobs", "pull", "2 of 3", "status", "ready")
				z.PatchStatus(t, daemonsets, z.ns, "pull", objectOf("{status: {numberReady: 3}}"))
			}
			z.field("zoo.example.com/v1/daemonjobs", "pull", "Complete", "status", "phase")
			z.WaitGone(t, daemonsets, z.ns, "pull")
		},
	},
	{
		name: "indexedjob", kinds: []gopftest.Kind{{Plural: "indexedjobs", Kind: "IndexedJob", Namespaced: true}},
		controllers: composite("indexedjobs", "{apiVersion: v1, resource: pods}"),
		hooks:       map[string]func(asked) map[string]any{"sync": indexedJob},
		live: func(t *testing.T, z zoo) {
			const parents = "zoo.example.com/v1/indexedjobs"
			z.apply("{apiVersion: zoo.example.com/v1, kind: IndexedJob, metadata: {name: job, namespace: $NS}, spec: {completions: 3, parallelism: 2}}")
			z.field(parents, "job", "2", "status", "active")
			z.absent(pods, z.ns, "job-2")
			for i := range 3 {
				z.Wait(t, pods, z.ns, fmt.Sprint("job-", i), func(*unstructured.Unstructured) bool { return true })
				z.PatchStatus(t, pods, z.ns, fmt.Sprint("job-", i), objectOf("{status: {phase: Succeeded}}"))
			}
			z.field(parents, "job", "3", "status", "succeeded")
			z.field(parents, "job", "0", "status", "active")
		},
	},
	{
		name: "update-strategy", kinds: []gopftest.Kind{{Plural: "ondeletes", Kind: "OnDelete", Namespaced: true}, {Plural: "recreates", Kind: "Recreate", Namespaced: true}},
		controllers: composite("ondeletes", "{apiVersion: v1, resource: configmaps, updateStrategy: {method: OnDelete}}") + "\n---\n" +
			composite("recreates", "{apiVersion: v1, resource: configmaps, updateStrategy: {method: Recreate}}"),
		hooks: map[string]func(asked) map[string]any{"sync": func(a asked) map[string]any {
			return children(map[string]any{"value": a.spec("value")},
				objectOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {value: %s}}", a.parent.GetName(), a.spec("value")))
		}},
		live: func(t *testing.T, z zoo) {
			for _, kind := range []string{OnDelete, Recreate} {
				name, parents := strings.ToLower(kind), zooGroup+"/v1/"+strings.ToLower(kind)+"s"
				z.apply(fmt.Sprintf("{apiVersion: zoo.example.com/v1, kind: %s, metadata: {name: %s, namespace: $NS}, spec: {value: one}}", kind, name))
				first := z.field(configmaps, name, "one", "data", "value").GetUID()
				z.patch(parents, name, "{spec: {value: two}}")
				z.field(parents, name, "two", "status", "value")
				if kind == OnDelete {
					if got := scalar(z.Get(t, configmaps, z.ns, name), "data", "value"); got != "one" {
						t.Errorf("the child was changed to %s before its deletion", got)
					}
					z.Delete(t, configmaps, z.ns, name)
				}
				if z.field(configmaps, name, "two", "data", "value").GetUID() == first {
					t.Errorf("%s: the child was not recreated", kind)
				}
			}
		},
	},
	{
		name: "vitess", kinds: []gopftest.Kind{{Plural: "vitessclusters", Kind: "VitessCluster", Namespaced: true}, {Plural: "vitesscells", Kind: "VitessCell", Namespaced: true}},
		controllers: composite("vitessclusters", "{apiVersion: zoo.example.com/v1, resource: vitesscells, updateStrategy: {method: InPlace}}") + "\n---\n" +
			composite("vitesscells", "{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}"),
		hooks: map[string]func(asked) map[string]any{"sync": vitess},
		live: func(t *testing.T, z zoo) {
			const parents = "zoo.example.com/v1/vitessclusters"
			z.apply("{apiVersion: zoo.example.com/v1, kind: VitessCluster, metadata: {name: db, namespace: $NS}, spec: {cells: 2, version: v1}}")
			z.field(parents, "db", "2", "status", "ready")
			z.patch(parents, "db", "{spec: {cells: 1, version: v2}}")
			z.field(configmaps, "db-0", "v2", "data", "version")
			z.WaitGone(t, "zoo.example.com/v1/vitesscells", z.ns, "db-1")
			if !z.Real() {
				z.WaitGone(t, configmaps, z.ns, "db-1") // by the garbage collector
			}
			z.field(parents, "db", "1", "status", "ready")
		},
	},
}

// image returns the image of the first container of a template.
func image(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprint(list[0].(map[string]any)["image"])
}

// blueGreen keeps two ReplicaSets. It changes the one that the Service does not select, and
// switches the Service when that one is available.
func blueGreen(a asked) map[string]any {
	name, replicas, wanted := a.parent.GetName(), a.number("replicas"), a.spec("image")
	other := map[string]string{"blue": "green", "green": "blue"}
	active := scalar(a.children["Service.v1"][name], "spec", "selector", "color")
	if active == "" {
		active = "blue"
	}
	sets := a.children["ReplicaSet.apps/v1"]
	images := map[string]string{active: image(sets[name+"-"+active]), other[active]: wanted}
	counts := map[string]int{active: replicas}
	switch next := sets[name+"-"+other[active]]; {
	case images[active] == "":
		images[active] = wanted
	case images[active] != wanted && image(next) == wanted && scalar(next, "status", "availableReplicas") == fmt.Sprint(replicas):
		active = other[active]
		counts[active] = replicas
	case images[active] != wanted:
		counts[other[active]] = replicas
	}
	list := []any{objectOf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {selector: {web: %s, color: %s}, ports: [{port: 80}]}}", name, name, active)}
	for _, color := range []string{"blue", "green"} {
		list = append(list, objectOf(`
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: %[1]s-%[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {web: %[1]s, color: %[2]s}}
  template:
    metadata: {labels: {web: %[1]s, color: %[2]s}}
    spec: {automountServiceAccountToken: false, containers: [{name: web, image: '%[4]s'}]}`, name, color, counts[color], images[color]))
	}
	return children(map[string]any{"active": active}, list...)
}

// available plays the kubelet for the two pods of a ReplicaSet. A cluster in memory has no
// ReplicaSet controller: there, it plays that one too.
func (z zoo) available(name, color string) {
	z.t.Helper()
	if !z.Real() {
		z.field(replicasets, name, "2", "spec", "replicas")
		z.PatchStatus(z.t, replicasets, z.ns, name, objectOf("{status: {replicas: 2, readyReplicas: 2, availableReplicas: 2}}"))
		return
	}
	mine := func(o *unstructured.Unstructured) bool { return o.GetLabels()["color"] == color }
	list := z.WaitList(z.t, pods, z.ns, func(list []*unstructured.Unstructured) bool {
		n := 0
		for _, o := range list {
			if mine(o) {
				n++
			}
		}
		return n == 2
	})
	for _, o := range list {
		if mine(o) {
			z.ready(o.GetName())
		}
	}
}

// orderedCats creates a cat when the cat before it is ready, and removes the last one first.
func orderedCats(a asked) map[string]any {
	cats := a.children["Pod.v1"]
	ready := func(o *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if m := c.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
				return true
			}
		}
		return false
	}
	var list []any
	replicas, grow := a.number("replicas"), true
	if a.finalizing {
		replicas, grow = len(cats)-1, false
	}
	for i := range replicas {
		o := cats[fmt.Sprint("cat-", i)]
		if o == nil && !grow {
			continue
		}
		grow = grow && o != nil && ready(o)
		list = append(list, cat(i, a.spec("image")), claim(i))
	}
	response := children(map[string]any{"cats": len(cats)}, list...)
	response["finalized"] = a.finalizing && len(cats) == 0
	return response
}

// daemonJob deletes its DaemonSet when all its pods are ready.
func daemonJob(a asked) map[string]any {
	set, name := a.children["DaemonSet.apps/v1"][a.parent.GetName()], a.parent.GetName()
	status := func(field string) string { return scalar(set, "status", field) }
	switch {
	case scalar(a.parent, "status", "phase") == "Complete", status("observedGeneration") == "1" && status("numberReady") == status("desiredNumberScheduled"):
		return children(map[string]any{"phase": "Complete"})
	}
	return children(map[string]any{"phase": "Running", "ready": status("numberReady") + " of " + status("desiredNumberScheduled")}, objectOf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {job: %[1]s}}
  template:
    metadata: {labels: {job: %[1]s}}
    spec: {nodeSelector: {none: none}, initContainers: [{name: work, image: work}], containers: [{name: pause, image: pause}]}`, name))
}

// indexedJob has a pod for each index, and a few unfinished ones at a time.
func indexedJob(a asked) map[string]any {
	list, active, succeeded := []any{}, 0, 0
	for i := range a.number("completions") {
		name := fmt.Sprint(a.parent.GetName(), "-", i)
		done := scalar(a.children["Pod.v1"][name], "status", "phase") == "Succeeded"
		switch {
		case done:
			succeeded++
		case active == a.number("parallelism"):
			continue
		default:
			active++
		}
		list = append(list, objectOf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  automountServiceAccountToken: false
  restartPolicy: Never
  containers: [{name: work, image: work, env: [{name: INDEX, value: "%d"}]}]`, name, i))
	}
	return children(map[string]any{"active": active, "succeeded": succeeded}, list...)
}

// vitess has cells, which are parents of a controller of their own.
func vitess(a asked) map[string]any {
	if a.parent.GetKind() == "VitessCell" {
		return children(map[string]any{"ready": len(a.children["ConfigMap.v1"])},
			objectOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {version: %s}}", a.parent.GetName(), a.spec("version")))
	}
	list, ready := []any{}, 0
	for i := range a.number("cells") {
		name := fmt.Sprint(a.parent.GetName(), "-", i)
		if scalar(a.children["VitessCell.zoo.example.com/v1"][name], "status", "ready") == "1" {
			ready++
		}
		list = append(list, objectOf("{apiVersion: zoo.example.com/v1, kind: VitessCell, metadata: {name: %s}, spec: {version: %s}}", name, a.spec("version")))
	}
	return children(map[string]any{"ready": ready}, list...)
}
