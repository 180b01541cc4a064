package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/internal/insight"
)

// planObjects is the number of planned objects. GOPF_PLAN_OBJECTS overrides it.
const planObjects = 40

// planOperator gives each object a ConfigMap. Its version 2 has other contents for every
// second object.
func planOperator(version int) *gopf.Operator {
	op := gopf.New(gopf.Identity("planall.gopf.dev"))
	op.Settings.Peering.Standalone = true
	op.Resource("kopfexamples").Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
		value := "v1"
		if version == 2 && strings.HasSuffix(r.Object.GetName(), "-even") {
			value = "v2"
		}
		gopf.Want(r, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Object.GetName()}, Data: map[string]string{"value": value}})
		return nil
	}, gopf.Owns[*corev1.ConfigMap]())
	return op
}

// stocked has the objects of the test as the API server stores them.
type stocked struct {
	t       *testing.T
	space   string
	dynamic dynamic.Interface
}

func (s stocked) of(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.dynamic.Resource(resource).Namespace(s.space)
}

// versions returns the versions of all objects and children by kind and name, and the number
// of children with a value.
func (s stocked) versions() (all map[string]string, values map[string]int) {
	s.t.Helper()
	all, values = map[string]string{}, map[string]int{}
	for name, resource := range map[string]schema.GroupVersionResource{"object": kopfexamples, "child": {Version: "v1", Resource: "configmaps"}} {
		list, err := s.of(resource).List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, o := range list.Items {
			if !strings.HasPrefix(o.GetName(), "plan-") {
				continue // of the cluster
			}
			all[name+" "+o.GetName()] = o.GetResourceVersion()
			if value, found, _ := unstructured.NestedString(o.Object, "data", "value"); found {
				values[value]++
			}
		}
	}
	return all, values
}

// await waits until there are n children with the value.
func (s stocked) await(value string, n int) {
	s.t.Helper()
	for limit := time.Now().Add(15 * time.Minute); ; time.Sleep(time.Second) {
		_, values := s.versions()
		if values[value] == n {
			return
		}
		if time.Now().After(limit) {
			s.t.Fatalf("%d children have the value %s, want %d", values[value], value, n)
		}
	}
}

// settle waits until nothing has changed for some seconds. The operator writes its state to
// an object after the children.
func (s stocked) settle() {
	s.t.Helper()
	before, _ := s.versions()
	for limit := time.Now().Add(15 * time.Minute); time.Now().Before(limit); {
		time.Sleep(5 * time.Second)
		after, _ := s.versions()
		if maps.Equal(before, after) {
			return
		}
		before = after
	}
	s.t.Fatal("the objects do not settle")
}

// changed returns the names whose versions differ.
func changed(before, after map[string]string) (names []string) {
	for name := range maps.Keys(after) {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestAPlanOfAllObjectsStoresNothingAndIsWhatTheOperatorThenDoes rehearses the upgrade of an
// operator.
func TestAPlanOfAllObjectsStoresNothingAndIsWhatTheOperatorThenDoes(t *testing.T) {
	t.Parallel()
	count := planObjects
	if text := os.Getenv("GOPF_PLAN_OBJECTS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	fast := rest.CopyConfig(cluster)
	fast.QPS = -1
	s := stocked{t, namespace(t), dynamic.NewForConfigOrDie(fast)}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < count; i += 8 {
				name := fmt.Sprintf("plan-%d-%s", i, []string{"even", "odd"}[i%2])
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": name}, "spec": map[string]any{}}}
				if _, err := s.of(kopfexamples).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	first := run(t, planOperator(1), gopf.Namespaces(s.space))
	s.await("v1", count)
	s.settle()
	first.Stop()

	before, _ := s.versions()
	var out, problems bytes.Buffer
	began := time.Now()
	code := cli.Run(t.Context(), planOperator(2), []string{"plan", "--all", "-o", "json", "--kubeconfig=" + kubeconfig, "--namespace=" + s.space}, &out, &problems)
	took := time.Since(began)
	after, _ := s.versions()
	if stored := changed(before, after); len(stored) > 0 || len(after) != len(before) {
		t.Errorf("the plan stored changes of %v; %d objects, before %d", stored, len(after), len(before))
	}
	var plan insight.Plan
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil || code != 2 {
		t.Fatalf("exit code %d, %v: %s", code, err, problems.String())
	}
	t.Logf("planned %d objects in %v", plan.Seen, took)
	var planned []string
	for _, o := range plan.Objects {
		for _, c := range o.Children {
			if c.Action != "change" || len(c.Diff) != 1 || c.Refused != "" {
				t.Errorf("planned %+v", c)
			}
			planned = append(planned, "child "+c.Child.Name)
		}
		planned = append(planned, "object "+o.Object.Name) // its inventory
	}
	slices.Sort(planned)
	if plan.Seen != count || len(planned) != 2*((count+1)/2) {
		t.Errorf("the plan has %d of %d objects, with %d changes", plan.Seen, count, len(planned))
	}

	second := run(t, planOperator(2), gopf.Namespaces(s.space))
	s.await("v2", (count+1)/2)
	s.settle()
	second.Stop()
	done, _ := s.versions()
	if did := changed(before, done); !slices.Equal(did, planned) {
		t.Errorf("the operator changed %d objects and children, the plan has %d", len(did), len(planned))
	}
}
