package metacontroller

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// vectorCase is a recording of the real Metacontroller.
type vectorCase struct {
	Name            string                       `json:"name"`
	ProcessEnded    bool                         `json:"processEnded"`
	Stability       string                       `json:"stability"`
	NamespaceLabels map[string]map[string]string `json:"namespaceLabels"`
	Steps           []vectorStep                 `json:"steps"`
}

type vectorStep struct {
	Do      []map[string]any            `json:"do"`
	DoError any                         `json:"doError"`
	Hooks   map[string][]map[string]any `json:"hooks"`
	Expect  []map[string]any            `json:"expect"`
	Events  []map[string]any            `json:"events"`
	Objects []any                       `json:"objects"`
	Settled *bool                       `json:"settled"`

	// CutAfter means that the list of a loop was cut.
	CutAfter int `json:"cutAfter"`
}

// notServed are the recordings of rolling updates with a known defect, which the recordings
// "rolling-intended" replace.
var notServed = []string{"rolling.json", "sample-request-full.json"}

// differs are the recordings with another outcome here, and why. They are played too.
var differs = map[string]string{
	"crash/etag-timeout-without-cleanup":            "the original never starts this controller",
	"status/decorator-labels-without-status":        "the original stores a null status, and fails from then on",
	"ssa/composite-Recreate":                        "the original never recreates kinds with generations",
	"ssa/rolling-inplace":                           "the rollout of the original stops after the first child",
	"children/other-namespace-of-namespaced-parent": "the original creates the child, and the garbage collector deletes it",
}

// TestParentsLiveAsUnderMetacontroller plays the recordings. The folder testdata has some of
// the cases; the variable GOPF_METACONTROLLER_VECTORS names another folder of that form.
func TestParentsLiveAsUnderMetacontroller(t *testing.T) {
	folder := os.Getenv("GOPF_METACONTROLLER_VECTORS")
	if folder == "" {
		folder = "testdata"
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	total := 0
	for _, path := range files {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "side8") || slices.Contains(notServed, name) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Cases         []vectorCase `json:"cases"`
			ApplyStrategy string       `json:"applyStrategy"`
		}
		if err := utiljson.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			total++
			t.Run(strings.TrimSuffix(name, ".json")+"/"+c.Name, func(t *testing.T) {
				_, other := differs[strings.TrimSuffix(name, ".json")+"/"+c.Name]
				synctest.Test(t, func(t *testing.T) { play(t, c, c.ProcessEnded || other, file.ApplyStrategy == "server-side-apply") })
			})
		}
	}
	if total == 0 {
		t.Error("there are no cases")
	}
}

// stage is the cluster and the hooks of one case.
type stage struct {
	cluster *gopftest.Cluster
	api     dynamic.Interface
	hooks   *scripted
	uids    map[string]string
	counts  map[string]int
	sums    map[string]string

	controller any // of the last recorded call
}

var stageKinds = []gopftest.Kind{
	{Group: "ctl.example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, StatusSubresource: true},
	{Group: "ctl.example.com", Version: "v1", Plural: "clusterthings", Kind: "ClusterThing", StatusSubresource: true},
	{Group: "ctl.example.com", Version: "v1", Plural: "nostatuses", Kind: "NoStatus", Namespaced: true},
	{Group: "ctl.example.com", Version: "v1", Plural: "leaves", Kind: "Leaf", Namespaced: true, StatusSubresource: true},
	{Group: "ctl.example.com", Version: "v1", Plural: "clusterleaves", Kind: "ClusterLeaf", StatusSubresource: true},
	{Group: Group, Version: Version, Plural: "compositecontrollers", Kind: "CompositeController", StatusSubresource: true},
	{Group: Group, Version: Version, Plural: "decoratorcontrollers", Kind: "DecoratorController", StatusSubresource: true},
	{Group: Group, Version: Version, Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true, StatusSubresource: true},
}

var stageBuiltin = map[string]string{
	"ConfigMap": "configmaps", "Service": "services", "Secret": "secrets", "Namespace": "namespaces",
	"CustomResourceDefinition": "customresourcedefinitions",
}

// newVectorStage returns the cluster at the beginning of a case.
func newVectorStage(t *testing.T, c vectorCase) *stage {
	t.Helper()
	cluster := gopftest.NewCluster(t, "configmaps", "services", "secrets")
	cluster.Load(t, "testdata/definitions.yaml")
	cluster.Define(t, stageKinds[:5]...)
	s := &stage{cluster: cluster, hooks: &scripted{}, uids: map[string]string{}, counts: map[string]int{}, sums: map[string]string{}}
	for _, ns := range []string{"ns-a", "ns-b"} {
		cluster.CreateNamespace(t, ns)
		if labels := c.NamespaceLabels[ns]; labels != nil {
			cluster.Patch(t, "namespaces", "", ns, map[string]any{"metadata": map[string]any{"labels": labels}})
		}
	}
	config := cluster.RESTConfig()
	config.UserAgent = "test"
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s.api = api
	if text := show(c); strings.Contains(text, `"cred"`) && !strings.Contains(text, "stringData") {
		// An earlier case of the recordings created it.
		_ = s.do(t, map[string]any{"create": map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "cred", "namespace": "ns-a"},
			"data": map[string]any{"username": "dQ==", "password": "cAo=", "token": "IHRvawo="},
		}})
	}
	return s
}

func (s *stage) start(t *testing.T, op *gopf.Operator) (stop func()) {
	t.Helper()
	return gopftest.Start(t, op, s.cluster)
}

func play(t *testing.T, c vectorCase, other, serverSide bool) {
	s := newVectorStage(t, c)
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	options := Options{Transport: s.hooks, Discovery: time.Second}
	if serverSide {
		options.ServerSide = formerManager
	}
	Declare(op, options)
	stop := s.start(t, op)
	defer stop()
	for i, step := range c.Steps {
		s.play(t, c, i, step, other)
		if t.Failed() {
			return
		}
	}
}

func (s *stage) play(t *testing.T, c vectorCase, number int, step vectorStep, other bool) {
	s.hooks.set(step)
	from := len(s.cluster.Requests())
	refused := false
	for _, action := range step.Do {
		if err := s.do(t, action); err != nil {
			refused = true
			if step.DoError == nil {
				t.Fatalf("step %d: %v", number, err)
			}
		}
		if arg, _ := action["delete"].(map[string]any); strings.HasSuffix(fmt.Sprint(arg["kind"]), "Controller") {
			synctest.Wait() // a person's next action comes after the controller has stopped
		}
	}
	if step.DoError != nil && !refused {
		t.Errorf("step %d: no action was refused", number)
	}
	limit := 4.0
	for _, e := range flatten(step.Expect) {
		if at, ok := number64(e["at"]); ok {
			limit = max(limit, at+2)
		}
	}
	time.Sleep(time.Duration(limit * float64(time.Second)))
	synctest.Wait()
	s.learn(t)
	if !other {
		s.compare(t, number, step, from, c.Stability == "same in 2 recordings")
	} else if calls := s.hooks.take(); number == 0 && len(calls) == 0 {
		t.Error("no hook was called")
	}
}

func number64(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// unknownUID stands for the UID in a hook's answer that the recordings do not contain.
const unknownUID = "00000000-0000-0000-0000-000000000001"

// resourceOf returns the resource of a kind.
func (s *stage) resourceOf(kind, apiVersion string) (schema.GroupVersionResource, bool) {
	for _, k := range stageKinds {
		if k.Kind == kind {
			return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural}, k.Namespaced
		}
	}
	gv, _ := schema.ParseGroupVersion(apiVersion)
	if apiVersion == "" {
		gv.Version = "v1"
	}
	return gv.WithResource(stageBuiltin[kind]), kind != "Namespace" && kind != "CustomResourceDefinition"
}

func (s *stage) client(kind, apiVersion, namespace string) dynamic.ResourceInterface {
	r, namespaced := s.resourceOf(kind, apiVersion)
	if !namespaced {
		return s.api.Resource(r)
	}
	return s.api.Resource(r).Namespace(namespace)
}

// do plays one action of a user.
func (s *stage) do(t *testing.T, action map[string]any) error {
	ctx := t.Context()
	for verb, argument := range action {
		if verb == "wait" {
			seconds, _ := number64(argument)
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			return nil
		}
		arg := argument.(map[string]any)
		text := func(name string) string { v, _ := arg[name].(string); return v }
		in := s.client(text("kind"), text("apiVersion"), text("namespace"))
		switch verb {
		case "create":
			obj := &unstructured.Unstructured{Object: arg}
			in := s.client(obj.GetKind(), obj.GetAPIVersion(), obj.GetNamespace())
			status := arg["status"]
			made, err := in.Create(ctx, obj, metav1.CreateOptions{})
			if err != nil || status == nil {
				return err
			}
			made.Object["status"] = status
			if obj.GetKind() == "NoStatus" {
				return nil
			}
			_, err = in.UpdateStatus(ctx, made, metav1.UpdateOptions{})
			return err
		case "merge":
			patch, err := json.Marshal(arg["patch"])
			if err != nil {
				return err
			}
			var sub []string
			if text("subresource") != "" {
				sub = append(sub, text("subresource"))
			}
			_, err = in.Patch(ctx, text("name"), types.MergePatchType, patch, metav1.PatchOptions{}, sub...)
			return err
		case "delete":
			options := metav1.DeleteOptions{}
			if p := metav1.DeletionPropagation(text("propagationPolicy")); p != "" {
				options.PropagationPolicy = &p
			}
			s.learn(t)
			return in.Delete(ctx, text("name"), options)
		case "own":
			by := arg["by"].(map[string]any)
			owner, err := s.client(by["kind"].(string), "", by["namespace"].(string)).Get(ctx, by["name"].(string), metav1.GetOptions{})
			if err != nil {
				return err
			}
			obj, err := in.Get(ctx, text("name"), metav1.GetOptions{})
			if err != nil {
				return err
			}
			own(owner, obj)
			_, err = in.Update(ctx, obj, metav1.UpdateOptions{})
			return err
		default:
			return fmt.Errorf("unknown action %s", verb)
		}
	}
	return nil
}

// learn remembers the UIDs of all objects.
func (s *stage) learn(t *testing.T) []any {
	var all []any
	for _, kind := range []string{"Thing", "ClusterThing", "NoStatus", "Leaf", "ClusterLeaf", "ConfigMap", "Service", "ControllerRevision", "CompositeController", "DecoratorController"} {
		r, _ := s.resourceOf(kind, "")
		list, err := s.api.Resource(r).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range list.Items {
			s.learnObject(obj.Object)
			if !strings.HasSuffix(kind, "Controller") && (obj.GetNamespace() == "" || strings.HasPrefix(obj.GetNamespace(), "ns-")) {
				all = append(all, obj.Object)
			}
		}
	}
	return all
}

// learnAll remembers the UIDs of objects in a request. Some are deleted by now.
func (s *stage) learnAll(value any) {
	s.learnObject(value)
	if fields, ok := value.(map[string]any); ok {
		for _, name := range sortedKeys(fields) {
			s.learnAll(fields[name])
		}
	}
}

func (s *stage) learnObject(value any) {
	m, ok := value.(map[string]any)
	if !ok {
		return
	}
	u := unstructured.Unstructured{Object: m}
	uid := string(u.GetUID())
	if uid == "" || s.uids[uid] != "" {
		return
	}
	name := u.GetKind() + "/" + u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	s.counts[name]++
	if n := s.counts[name]; n > 1 {
		name += fmt.Sprintf(" #%d", n)
	}
	s.uids[uid] = "<uid " + name + ">"
}

var (
	timePattern = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)
	sumPattern  = regexp.MustCompile(`[0-9a-f]{40}`)
	rvPattern   = regexp.MustCompile(`"resourceVersion":"\d+"`)
)

// normal returns a value with the replacements of the recordings.
func (s *stage) normal(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	text := timePattern.ReplaceAllString(string(raw), `"<time>"`)
	text = rvPattern.ReplaceAllString(text, `"resourceVersion":"<rv>"`)
	text = strings.ReplaceAll(text, unknownUID, jsonText("<uid>"))
	for uid, name := range s.uids {
		text = strings.ReplaceAll(text, uid, jsonText(name))
	}
	text = sumPattern.ReplaceAllStringFunc(text, func(sum string) string {
		if s.sums[sum] == "" {
			s.sums[sum] = fmt.Sprintf("<sha1 %d>", len(s.sums)+1)
		}
		return jsonText(s.sums[sum])
	})
	var result any
	if err := utiljson.Unmarshal([]byte(text), &result); err != nil {
		return err
	}
	return clean(result)
}

func jsonText(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw[1 : len(raw)-1])
}

// clean removes managedFields and what an update of the original adds for nothing.
func clean(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			v[key] = clean(field)
		}
		if names, ok := v["names"].([]any); ok {
			slices.SortFunc(names, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		if meta, ok := v["metadata"].(map[string]any); ok {
			delete(meta, "managedFields")
			for _, field := range []string{"labels", "annotations", "finalizers"} {
				switch f := meta[field].(type) {
				case map[string]any:
					if len(f) == 0 {
						delete(meta, field)
					}
				case []any:
					if len(f) == 0 {
						delete(meta, field)
					}
				}
			}
			if status, ok := v["status"]; ok && status == nil {
				delete(v, "status")
			}
		}
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	}
	return value
}

// flatten returns the entries of a step without repetitions.
func flatten(entries []map[string]any) (list []map[string]any) {
	for _, e := range entries {
		block, ok := e["block"].([]any)
		if !ok {
			list = append(list, e)
			continue
		}
		for _, b := range block {
			list = append(list, b.(map[string]any))
		}
	}
	return list
}
