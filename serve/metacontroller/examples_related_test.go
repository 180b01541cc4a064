package metacontroller

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// withCustomize returns a CompositeController with a customize hook.
func withCustomize(parent, children, version string) string {
	return strings.Replace(composite(parent, children), "{sync: {webhook: {url: $HOOK/sync}}}",
		"{sync: {version: "+version+", webhook: {url: $HOOK/sync}}, customize: {version: "+version+", webhook: {url: $HOOK/customize}}}", 1)
}

// rules returns the response of a customize hook.
func rules(list ...string) map[string]any {
	all := []any{}
	for _, rule := range list {
		all = append(all, objectOf("%s", rule))
	}
	return map[string]any{"relatedResources": all}
}

// copies returns a copy of each object of a kind for each namespace.
func copies(a asked, kind string, wanted func(space *unstructured.Unstructured) bool) map[string]any {
	list := []any{}
	for _, source := range a.related[kind+".v1"] {
		if source.GetNamespace() != a.spec("sourceNamespace") {
			continue // a copy
		}
		for _, space := range a.related["Namespace.v1"] {
			if !wanted(space) {
				continue
			}
			o := objectOf("{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: %s}}", kind, source.GetName(), space.GetName())
			o["data"] = source.Object["data"]
			list = append(list, o)
		}
	}
	return children(map[string]any{"copies": len(list)}, list...)
}

// names returns the sorted names of objects in a request.
func names(list map[string]*unstructured.Unstructured) string {
	keys := sortedKeys(list)
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// relatedExamples use related objects.
var relatedExamples = []example{
	{
		name: "configmappropagation", kinds: []gopftest.Kind{{Plural: "propagations"}},
		controllers: withCustomize("propagations", inPlaceConfigMaps, V1),
		hooks: map[string]func(asked) map[string]any{
			"customize": func(a asked) map[string]any {
				return rules("{apiVersion: v1, resource: configmaps, namespace: "+a.spec("sourceNamespace")+", names: ["+a.spec("sourceName")+"]}",
					"{apiVersion: v1, resource: namespaces, names: ["+a.spec("targets")+"]}")
			},
			"sync": func(a asked) map[string]any {
				return copies(a, "ConfigMap", func(*unstructured.Unstructured) bool { return true })
			},
		},
		live: func(t *testing.T, z zoo) {
			one, two := z.space("one", ""), z.space("two", "")
			z.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: source, namespace: $NS}, data: {a: '1'}}")
			z.apply("{apiVersion: zoo.example.com/v1, kind: Propagation, metadata: {name: $NS}, spec: {sourceNamespace: $NS, sourceName: source, targets: '$NS-one, $NS-two'}}")
			z.Wait(t, configmaps, one, "source", is("1", "data", "a"))
			z.Wait(t, configmaps, two, "source", is("1", "data", "a"))
			z.patch(configmaps, "source", "{data: {a: '2'}}")
			z.Wait(t, configmaps, one, "source", is("2", "data", "a"))
			z.Patch(t, "zoo.example.com/v1/propagations", "", z.ns, objectOf("{spec: {targets: %s}}", one))
			z.WaitGone(t, configmaps, two, "source")
			if !z.Real() { // the garbage collector learns of new kinds only twice a minute
				z.Delete(t, "zoo.example.com/v1/propagations", "", z.ns)
				z.WaitGone(t, configmaps, one, "source")
			}
		},
	},
	{
		name: "globalconfigmap", kinds: []gopftest.Kind{{Plural: "globalmaps", Kind: "GlobalMap"}},
		controllers: withCustomize("globalmaps", inPlaceConfigMaps, V1),
		hooks: map[string]func(asked) map[string]any{
			"customize": func(a asked) map[string]any {
				return rules("{apiVersion: v1, resource: configmaps, namespace: "+a.spec("sourceNamespace")+", names: [global]}", "{apiVersion: v1, resource: namespaces}")
			},
			"sync": func(a asked) map[string]any {
				return copies(a, "ConfigMap", func(space *unstructured.Unstructured) bool { return space.GetLabels()["example"] == a.parent.GetName() })
			},
		},
		live: func(t *testing.T, z zoo) {
			one := z.space("one", "example: $NS")
			z.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: global, namespace: $NS}, data: {a: '1'}}")
			z.apply("{apiVersion: zoo.example.com/v1, kind: GlobalMap, metadata: {name: $NS}, spec: {sourceNamespace: $NS}}")
			z.Wait(t, configmaps, one, "global", is("1", "data", "a"))
			two := z.space("two", "example: $NS")
			z.Wait(t, configmaps, two, "global", is("1", "data", "a"))
		},
	},
	{
		name: "secretpropagation", kinds: []gopftest.Kind{{Plural: "sharings"}},
		controllers: withCustomize("sharings", "{apiVersion: v1, resource: secrets, updateStrategy: {method: InPlace}}", V1),
		hooks:       secretHooks,
		live: func(t *testing.T, z zoo) {
			alpha, gamma := z.space("al", "share: $NS"), z.space("ga", "")
			z.apply("{apiVersion: v1, kind: Secret, metadata: {name: shared, namespace: $NS}, data: {a: MQ==}}")
			z.apply("{apiVersion: zoo.example.com/v1, kind: Sharing, metadata: {name: $NS}, spec: {sourceNamespace: $NS}}")
			z.Wait(t, secrets, alpha, "shared", is("MQ==", "data", "a"))
			z.absent(secrets, gamma, "shared")
			z.Patch(t, "v1/namespaces", "", gamma, objectOf("{metadata: {labels: {share: %s}}}", z.ns))
			z.Wait(t, secrets, gamma, "shared", is("MQ==", "data", "a"))
		},
	},
	{
		name: "configmap-list-v2", kinds: []gopftest.Kind{{Plural: "maplists", Kind: "MapList", Namespaced: true}},
		controllers: withCustomize("maplists", inPlaceConfigMaps, V2),
		hooks: map[string]func(asked) map[string]any{
			"customize": func(a asked) map[string]any {
				place := ""
				if space := a.spec("sourceNamespace"); space != "" {
					place = ", namespace: " + space
				}
				return rules("{apiVersion: v1, resource: configmaps, labelSelector: {matchLabels: {listed: " + a.parent.GetNamespace() + "}}" + place + "}")
			},
			"sync": func(a asked) map[string]any {
				found := a.related["ConfigMap.v1"]
				return children(map[string]any{"count": len(found)}, objectOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-list}, data: {names: '%s'}}", a.parent.GetName(), names(found)))
			},
		},
		live: func(t *testing.T, z zoo) {
			one, two := z.space("one", ""), z.space("two", "")
			z.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $NS-one, labels: {listed: $NS}}}")
			z.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: $NS-two, labels: {listed: $NS}}}")
			z.apply("{apiVersion: zoo.example.com/v1, kind: MapList, metadata: {name: some, namespace: $NS}, spec: {sourceNamespace: $NS-one}}")
			z.apply("{apiVersion: zoo.example.com/v1, kind: MapList, metadata: {name: all, namespace: $NS}, spec: {}}")
			z.field(configmaps, "some-list", one+"/a", "data", "names")
			z.field(configmaps, "all-list", one+"/a "+two+"/b", "data", "names")
			z.Delete(t, configmaps, one, "a")
			z.field(configmaps, "all-list", two+"/b", "data", "names")
			z.field("zoo.example.com/v1/maplists", "some", "0", "status", "count")
		},
	},
	{
		name: "namespace-list-v2", kinds: []gopftest.Kind{{Plural: "namespacelists", Kind: "NamespaceList", Namespaced: true}},
		controllers: withCustomize("namespacelists", inPlaceConfigMaps, V2),
		hooks: map[string]func(asked) map[string]any{
			"customize": func(a asked) map[string]any {
				return rules("{apiVersion: v1, resource: namespaces, labelSelector: {matchLabels: {listed: " + a.parent.GetNamespace() + "}}}")
			},
			"sync": func(a asked) map[string]any {
				found := a.related["Namespace.v1"]
				return children(map[string]any{"count": len(found)}, objectOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-list}, data: {names: '%s'}}", a.parent.GetName(), names(found)))
			},
		},
		live: func(_ *testing.T, z zoo) {
			one := z.space("one", "listed: $NS")
			z.apply("{apiVersion: zoo.example.com/v1, kind: NamespaceList, metadata: {name: l, namespace: $NS}, spec: {}}")
			z.field(configmaps, "l-list", one, "data", "names")
			two := z.space("two", "listed: $NS")
			z.field(configmaps, "l-list", one+" "+two, "data", "names")
			z.field("zoo.example.com/v1/namespacelists", "l", "2", "status", "count")
		},
	},
	targetLabelSelector(),
	webhookAuth,
}

var secretHooks = map[string]func(asked) map[string]any{
	"customize": func(a asked) map[string]any {
		return rules("{apiVersion: v1, resource: secrets, namespace: "+a.spec("sourceNamespace")+", names: [shared]}",
			"{apiVersion: v1, resource: namespaces, labelSelector: {matchLabels: {share: "+a.parent.GetName()+"}}}")
	},
	"sync": func(a asked) map[string]any {
		return copies(a, "Secret", func(*unstructured.Unstructured) bool { return true })
	},
}

// targetLabelSelector has two controllers of the same parents. The second has a label that
// does not select it, so another program serves it.
func targetLabelSelector() example {
	var strange atomic.Int32
	configMap := func(a asked) map[string]any {
		return children(map[string]any{"value": a.spec("value")},
			objectOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {value: %s}}", a.spec("value")))
	}
	return example{
		name: "target-label-selector", kinds: []gopftest.Kind{{Plural: "targets", Namespaced: true}},
		controllers: composite("targets", inPlaceConfigMaps) + "\n---\nmetadata: {labels: {test: other}}" +
			strings.ReplaceAll(composite("targets", inPlaceConfigMaps), "/sync", "/other"),
		hooks: map[string]func(asked) map[string]any{"sync": configMap, "other": func(a asked) map[string]any {
			strange.Add(1)
			return configMap(a)
		}},
		live: func(t *testing.T, z zoo) {
			z.apply("{apiVersion: zoo.example.com/v1, kind: Target, metadata: {name: t, namespace: $NS}, spec: {value: one}}")
			z.field(configmaps, "mine", "one", "data", "value")
			z.patch("zoo.example.com/v1/targets", "t", "{spec: {value: two}}")
			z.field(configmaps, "mine", "two", "data", "value")
			if n := strange.Load(); n > 0 {
				t.Errorf("the controller of another program was called %d times", n)
			}
		},
	}
}
