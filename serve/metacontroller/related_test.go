package metacontroller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var mapResource = resource{gvr: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, apiVersion: "v1", kind: "ConfigMap", namespaced: true}

// mapRule returns a prepared rule for ConfigMaps.
func mapRule(change func(*Rule)) *Rule {
	r := &Rule{APIVersion: "v1", Resource: "configmaps"}
	if change != nil {
		change(r)
	}
	r.parse()
	return r
}

func mapIn(namespace, name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// found returns the parents whose rules select an object.
func found(kept *keptRules, obj *unstructured.Unstructured, version string) string {
	selected := map[key]bool{}
	kept.find(mapResource, obj, version, func(namespace string) map[string]string { return map[string]string{"name": namespace} }, selected)
	var list []string
	for k := range selected {
		list = append(list, k.namespace+"/"+k.name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestAnEventFindsTheParentsWhoseRulesSelectItsObject(t *testing.T) {
	for version, want := range map[string][]string{
		V1: {"/all /in-a a/all", "/all /labels", "/all /in-a a/all a/names", "/all"},
		V2: {"/all /in-a a/all b/all", "/all /labels a/all b/all b/other", "/all /in-a a/all a/names b/all", "/all a/all b/all b/other"},
	} {
		var kept keptRules
		keep := func(namespace, name string, change func(*Rule)) {
			other := mapRule(func(r *Rule) { r.Resource = "secrets" })
			kept.set(key{0, namespace, name}, customized{rules: []*Rule{other, mapRule(change)}}, version)
		}
		keep("", "all", nil)
		keep("", "in-a", func(r *Rule) { r.Namespace = "a" })
		keep("", "labels", func(r *Rule) {
			r.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
			r.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c"}}
		})
		keep("a", "all", nil)
		keep("a", "names", func(r *Rule) { r.Names = []string{"n", "m"} })
		keep("a", "replaced", nil)
		keep("a", "replaced", func(r *Rule) { r.Names = []string{"never"} })
		keep("b", "all", nil)
		keep("b", "other", func(r *Rule) { r.Namespace = "c" })
		keep("a", "invalid", func(r *Rule) { r.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"": ""}} })
		keep("a", "gone", nil)
		kept.drop(key{0, "a", "gone"}, version)
		for i, obj := range []*unstructured.Unstructured{mapIn("a", "x", nil), mapIn("c", "x", map[string]string{"app": "x"}), mapIn("a", "n", nil), mapIn("c", "x", nil)} {
			if got := found(&kept, obj, version); got != want[i] {
				t.Errorf("%s: %s is related to %q, want %q", version, describe(obj), got, want[i])
			}
		}
		for k := range kept.byParent {
			kept.drop(k, version)
		}
		if len(kept.byParent)+len(kept.byScope) > 0 {
			t.Errorf("%s: left: %v, %v", version, kept.byParent, kept.byScope)
		}
	}
}

// A tenant has many parents with many rules.
func TestTheRulesOfANamespaceCostNoTimeForOthers(t *testing.T) {
	var kept keptRules
	for i := range 200 {
		var rules []*Rule
		for j := range mostRules {
			rules = append(rules, mapRule(func(r *Rule) {
				r.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"never": fmt.Sprint(j), "b": "c"}}
			}))
		}
		kept.set(key{0, "attacker", fmt.Sprint(i)}, customized{rules: rules}, V1)
	}
	labels := map[string]string{"app": "x", "b": "c"}
	for namespace, limit := range map[string]float64{"tenant": 30, "attacker": 30} {
		obj := mapIn(namespace, "x", labels)
		selected := map[key]bool{}
		if n := testing.AllocsPerRun(5, func() { kept.find(mapResource, obj, V1, nil, selected) }); n > limit || len(selected) > 0 {
			t.Errorf("an event in namespace %s costs %.0f allocations, and selects %d parents", namespace, n, len(selected))
		}
	}
	if n := len(kept.byScope[scope{"v1", "configmaps", "tenant"}]) + len(kept.byScope[scope{"v1", "configmaps", ""}]); n > 0 {
		t.Errorf("an event of another namespace looks at %d parents", n)
	}
}

func TestAResponseWithTooManyRulesIsRefused(t *testing.T) {
	many := func(n int, item func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = item(i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	rule := func(more string) string { return `{"apiVersion":"v1","resource":"configmaps"` + more + `}` }
	name := func(i int) string { return fmt.Sprintf("%q", fmt.Sprint("n", i)) }
	labels := func(n int) string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("l", i)] = "v"
		}
		text, _ := json.Marshal(map[string]any{"matchLabels": all})
		return string(text)
	}
	values := func(n int) string {
		return `{"matchExpressions":[{"key":"k","operator":"NotIn","values":` + many(n, name) + `}]}`
	}
	for body, want := range map[string]string{
		many(mostRules, func(int) string { return rule("") }):                                      "",
		many(mostRules+1, func(int) string { return rule("") }):                                    "the response has 101 relatedResources, and the limit is 100",
		"[" + rule(`,"names":`+many(mostNames, name)) + "]":                                        "",
		"[" + rule(`,"names":`+many(mostNames+1, name)) + "]":                                      "a related rule of configmaps in v1 has 1001 names, and the limit is 1000",
		"[" + rule(`,"labelSelector":`+labels(mostParts)) + "]":                                    "",
		"[" + rule(`,"labelSelector":`+labels(mostParts+1)) + "]":                                  "a selector may have 100 requirements and 100 values, and this one has 101 and 101",
		"[" + rule(`,"namespaceSelector":`+values(mostParts)) + "]":                                "",
		"[" + rule(`,"namespaceSelector":`+values(mostParts+1)) + "]":                              "a selector may have 100 requirements and 100 values, and this one has 1 and 101",
		many(6, func(int) string { return rule(`,"labelSelector":` + labels(mostParts)) }):         "the selectors of the relatedResources have 1200 requirements and values, and the limit is 1000",
		"[" + rule(`,"labelSelector":{"matchExpressions":[{"key":"k","operator":"Maybe"}]}`) + "]": `"Maybe" is not a valid label selector operator`,
	} {
		var response CustomizeHookResponse
		err := Decode([]byte(`{"relatedResources":`+body+`}`), &response, "customize", V1, false)
		for _, r := range response.RelatedResources {
			if err == nil {
				err = r.Check(V2, "n", true)
			}
		}
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A tenant has parents for which the customize hook returns many names.
func TestALargeResponseOfACustomizeHookIsNotKept(t *testing.T) {
	for number, large := range map[int]bool{1: false, 10: true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			calls := map[string]int{}
			related := 0
			c := newStage(t, Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				var request struct {
					Related map[string]map[string]any `json:"related"`
				}
				if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
					return nil, err
				}
				mu.Lock()
				defer mu.Unlock()
				calls[r.URL.Path]++
				if r.URL.Path == "/sync" {
					related = len(request.Related["ConfigMap.v1"])
					return respond(r, nil, map[string]any{"body": map[string]any{}}), nil
				}
				var list []any
				for i := range number {
					var names []any
					for j := range 500 {
						names = append(names, fmt.Sprint("n-", i, "-", j))
					}
					list = append(list, map[string]any{"apiVersion": "v1", "resource": "configmaps", "names": names})
				}
				return respond(r, nil, map[string]any{"body": map[string]any{"relatedResources": list}}), nil
			})})
			c.Create(t, thing())
			ctl := controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"})
			hooks := ctl.Object["spec"].(map[string]any)["hooks"].(map[string]any)
			hooks["customize"] = map[string]any{"webhook": map[string]any{"url": "http://hooks.test/customize"}}
			c.Create(t, ctl)
			time.Sleep(5 * time.Second)
			for i := range 3 {
				c.Create(t, mapIn("default", fmt.Sprint("n-0-", i), nil))
				time.Sleep(5 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			if related != 3 || calls["/sync"] < 4 {
				t.Errorf("%d rules: the last of %d syncs got %d objects", number, calls["/sync"], related)
			}
			if again := calls["/customize"] > 1; again != large {
				t.Errorf("%d rules: %d calls of the customize hook for %d syncs", number, calls["/customize"], calls["/sync"])
			}
		})
	}
}

func TestTheRulesThatAreKeptNeedLittleMemory(t *testing.T) {
	var all []*Rule
	for i := range mostRules {
		all = append(all, mapRule(func(r *Rule) {
			r.Namespace = fmt.Sprint("n", i%2)
			for j := range mostNames {
				r.Names = append(r.Names, fmt.Sprint(j))
			}
			if i == 3 {
				r.APIVersion = strings.Repeat("v", 1<<20)
			}
		}))
	}
	size := 0
	list := outlines(all)
	for _, r := range list {
		size += r.parsed.size
	}
	if len(list) != 2 || size > keptRulesSize {
		t.Errorf("%d rules with %d bytes are kept", len(list), size)
	}
}
