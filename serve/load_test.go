package serve_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve"
)

const things = "example.com/v1/things"

// operator writes a file with the handlers of things, and scripts next to it.
func operator(t *testing.T, handlers string, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := "apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: things}\nsettings: {execution: {defaultBackoff: 10ms}}\nresources:\n  - resource: " + things + "\n    handlers:\n" + handlers
	if err := os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, body := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o700); err != nil { //nolint:gosec // it must be executable
			t.Fatal(err)
		}
	}
	return dir
}

// start runs the operator of a folder.
func start(t *testing.T, dir string, more ...string) *gopftest.Cluster {
	t.Helper()
	op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	cluster := gopftest.NewCluster(t, append([]string{things}, more...)...)
	gopftest.Start(t, op, cluster)
	return cluster
}

func thing(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

// waitStatus waits until a field of the status has the value.
func waitStatus(t *testing.T, c *gopftest.Cluster, name, field string, want any) {
	t.Helper()
	c.Wait(t, things, "default", name, func(o *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", field)
		return got == want
	})
}

func TestAnObjectGoesThroughItsWholeLifeOnAnyCluster(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	dir := operator(t, `
      - {id: made, on: [create], exec: [./handle], env: [LOG=`+log+`]}
      - {id: resized, field: spec.size, on: [update], exec: [./handle], env: [LOG=`+log+`]}
      - {id: dropped, on: [delete], exec: [./handle], env: [LOG=`+log+`]}
`, map[string]string{"handle": `echo "$GOPF_HANDLER $GOPF_REASON $GOPF_NAMESPACE/$GOPF_NAME" >> $LOG
echo "{\"status\": {\"last\": \"$GOPF_HANDLER\"}}"
`})
	// On the real control plane under "gopf exec", otherwise in memory.
	c := gopftest.AnyCluster(t, things)
	ns := c.Namespace(t)
	op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	op.Settings.Peering.Standalone = true // other tests define peerings
	gopftest.Start(t, op, c, gopf.Namespaces(ns))
	obj := thing("a", map[string]any{"size": int64(1)})
	obj.SetNamespace(ns)
	c.Create(t, obj)
	reached := func(want string) {
		c.Wait(t, things, ns, "a", func(o *unstructured.Unstructured) bool {
			last, _, _ := unstructured.NestedString(o.Object, "status", "last")
			return last == want
		})
	}
	reached("made")
	c.Patch(t, things, ns, "a", map[string]any{"spec": map[string]any{"size": 2}})
	reached("resized")
	c.Delete(t, things, ns, "a")
	c.WaitGone(t, things, ns, "a")
	text, err := os.ReadFile(log)
	if want := strings.ReplaceAll("made create NS/a\nresized update NS/a\ndropped delete NS/a\n", "NS", ns); err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestHooksGetTheWholeContract(t *testing.T) {
	inputs := make(chan map[string]any, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		inputs <- in
		_, _ = io.WriteString(w, `{"labels": {"seen": "yes"}, "memo": {"n": 1}, "result": {"r": 2}, "patch": {"spec": {"extra": true}}}`)
	}))
	defer server.Close()
	c := start(t, operator(t, "      - {id: all, on: [create, update], field: spec.size, http: {url: '"+server.URL+"'}}\n", nil))
	c.Create(t, thing("a", map[string]any{"size": int64(1)}))
	c.Wait(t, things, "default", "a", func(o *unstructured.Unstructured) bool {
		extra, _, _ := unstructured.NestedBool(o.Object, "spec", "extra")
		return extra && o.GetLabels()["seen"] == "yes"
	})
	<-inputs
	c.Patch(t, things, "default", "a", map[string]any{"spec": map[string]any{"size": 2}})
	in := <-inputs
	text, _ := json.Marshal([]any{in["v"], in["handler"], in["reason"], in["retry"], in["field"], in["diff"], in["memo"], in["key"] != nil, in["started"] != nil})
	if want := `[1,"all","update",0,["spec","size"],[["change",[],1,2]],{"n":1},true,true]`; string(text) != want {
		t.Errorf("got %s", text)
	}
}

func TestABadHookKeepsItsObjectDueAndDelaysNoOther(t *testing.T) {
	dir := operator(t, "      - {id: bad, on: [create], exec: [./bad], callTimeout: 300ms, processes: 4}\n", map[string]string{"bad": `
case $GOPF_NAME-$GOPF_RETRY in
  hang-0) sleep 1000;;
  fork-0) sleep 1000 & exit 1;;
  much-0) yes;;
  signal-0) kill -SEGV $$;;
  html-0) echo '<html>';;
  half-0) printf '{"status": {';;
esac
echo '{"status": {"phase": "done"}}'
`})
	c := start(t, dir)
	names := []string{"hang", "fork", "much", "signal", "html", "half", "good"}
	for _, name := range names {
		c.Create(t, thing(name, map[string]any{}))
	}
	for _, name := range slices.Backward(names) {
		waitStatus(t, c, name, "phase", "done")
	}
}

func TestOutcomesDecideAboutFurtherCalls(t *testing.T) {
	dir := operator(t, "      - {id: h, on: [create], exec: [./h]}\n", map[string]string{"h": `
case $GOPF_NAME-$GOPF_RETRY in
  wait-0) echo '{"wait": {"after": "10ms", "message": "soon"}, "status": {"waited": true}}';;
  retry-0) echo '{"retry": {"after": 0.01, "error": "again"}}';;
  permanent-*) echo '{"permanent": "never", "status": {"phase": "failed"}}';;
  *) echo "{\"status\": {\"phase\": \"$GOPF_RETRY\"}}";;
esac
`})
	c := start(t, dir)
	for name, want := range map[string]string{"wait": "1", "retry": "1", "permanent": "failed"} {
		c.Create(t, thing(name, map[string]any{}))
		waitStatus(t, c, name, "phase", want)
	}
	waitStatus(t, c, "wait", "waited", true)
}

func TestObjectsAreAppliedAndDeleted(t *testing.T) {
	dir := operator(t, "      - {id: h, on: [create], template: {apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: \"${object.metadata.name}-x\"}, data: {n: \"${string(object.spec.size)}\"}}], delete: [{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}]}}\n", nil)
	c := start(t, dir, "v1/configmaps")
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "old", "namespace": "default"}}})
	c.Create(t, thing("a", map[string]any{"size": int64(7)}))
	c.Wait(t, "v1/configmaps", "default", "a-x", func(o *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedString(o.Object, "data", "n")
		return n == "7"
	})
	c.WaitGone(t, "v1/configmaps", "default", "old")
}

func TestFiltersRestrictHandlers(t *testing.T) {
	dir := operator(t, `
      - {id: labels, on: [create], where: {labels: {tier: [prod, test]}}, template: {status: {labels: true}}}
      - {id: cel, on: [create], where: {cel: "object.spec.size > 1"}, template: {status: {cel: true}}}
      - {id: none, on: [create], where: {annotations: {skip: null}, fields: {spec.size: {exists: true}}}, template: {status: {none: true}}}
`, nil)
	c := start(t, dir)
	a := thing("a", map[string]any{"size": int64(2)})
	a.SetLabels(map[string]string{"tier": "test"})
	a.SetAnnotations(map[string]string{"skip": "x"})
	c.Create(t, a)
	c.Create(t, thing("b", map[string]any{"size": int64(1)}))
	waitStatus(t, c, "a", "labels", true)
	waitStatus(t, c, "a", "cel", true)
	waitStatus(t, c, "b", "none", true)
	for name, absent := range map[string][]string{"a": {"none"}, "b": {"labels", "cel"}} {
		for _, field := range absent {
			if v, found, _ := unstructured.NestedFieldNoCopy(c.Get(t, things, "default", name).Object, "status", field); found {
				t.Errorf("%s.%s is %v", name, field, v)
			}
		}
	}
}

func TestReviewsAreDecidedByExpressionsAndPrograms(t *testing.T) {
	dir := operator(t, `
      - {id: small, validate: true, cel: object.spec.size <= 100, message: "at most 100, not ${object.spec.size}"}
      - {id: named, validate: true, exec: [./named]}
      - {id: owner, mutate: true, operations: [CREATE], template: {patch: {spec: {owner: "${review.user.?username.orValue('x')}"}}}}
`, map[string]string{"named": `test "$GOPF_NAME" = bad && echo '{"deny": "a bad name"}' || echo '{"warnings": ["careful"]}'`})
	c := start(t, dir)
	gopftestReady(t, c)
	for name, want := range map[string]string{"big": "at most 100, not 101", "bad": "a bad name", "good": ""} {
		size := int64(1)
		if name == "big" {
			size = 101
		}
		err := create(t, c, thing(name, map[string]any{"size": size}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if owner, found, _ := unstructured.NestedString(c.Get(t, things, "default", "good").Object, "spec", "owner"); !found {
		t.Errorf("the owner is %q", owner)
	}
}

func TestTimersEventsAndDaemonsRun(t *testing.T) {
	dir := operator(t, `
      - {id: tick, timer: 20ms, exec: [./count], keep: true}
      - {id: seen, on: [event], template: {labels: {seen: "${event == '' ? 'LISTED' : event}"}}, where: {labels: {seen: null}}}
      - {id: runs, daemon: true, exec: [./runs]}
`, map[string]string{
		"count": `n=0; while read -r line; do n=$((n + 1)); id=$(expr "$line" : '{"id":\([0-9]*\)'); echo "{\"id\": $id, \"status\": {\"ticks\": $((n > 3))}}"; done`,
		"runs":  `trap 'exit 0' TERM; while :; do sleep 0.05; done`,
	})
	c := start(t, dir)
	c.Create(t, thing("a", map[string]any{}))
	waitStatus(t, c, "a", "ticks", int64(1))
	c.Wait(t, things, "default", "a", func(o *unstructured.Unstructured) bool { return o.GetLabels()["seen"] != "" })
	c.Delete(t, things, "default", "a")
	c.WaitGone(t, things, "default", "a")
}

func TestAProgramDeclaresChildren(t *testing.T) {
	dir := operator(t, "      - {id: children, reconcile: {owns: [v1/configmaps]}, exec: [./children]}\n", map[string]string{"children": `
case "$(cat)" in *'"ConfigMap.v1":{"a-x"'*) known=true;; *) known=false;; esac
echo '{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "'$GOPF_NAME'-x"}, "data": {"a": "b"}}], "status": {"known": '$known'}}'
`})
	c := start(t, dir, "v1/configmaps")
	c.Create(t, thing("a", map[string]any{}))
	wanted := func(o *unstructured.Unstructured) bool {
		a, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return a == "b"
	}
	c.Wait(t, "v1/configmaps", "default", "a-x", wanted)
	c.Patch(t, "v1/configmaps", "default", "a-x", map[string]any{"data": map[string]any{"a": "drift"}})
	c.Wait(t, "v1/configmaps", "default", "a-x", wanted)
	waitStatus(t, c, "a", "known", true)
	c.Delete(t, things, "default", "a")
	c.WaitGone(t, "v1/configmaps", "default", "a-x")
}

func TestCheckFindsMistakesInExpressionsAndSettings(t *testing.T) {
	for text, want := range map[string]string{
		"      - {id: h, on: [create], cel: 'objekt.spec'}\n":                                 "undeclared reference to 'objekt'",
		"      - {id: h, validate: true, cel: '1 + 1'}\n":                                     "is not true or false",
		"      - {id: h, on: [create], exec: [no-such-program-here]}\n":                       `there is no program "no-such-program-here" in PATH`,
		"      - {id: h, on: [create], template: {a: '${object.spec'}}\n":                     "no closing brace",
		"      - {id: h, on: [create], cel: 'null'}\nsettings: {election: {enabeld: true}}\n": `the key "settings" is given twice`,
	} {
		dir := operator(t, text, nil)
		if err := serve.Check(os.DirFS(dir), "operator.yaml", serve.Dir(dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if err := serve.Check(os.DirFS("testdata/database"), "operator.yaml", serve.Dir("testdata/database")); err != nil {
		t.Errorf("the sample: %v", err)
	}
}

func TestCheckComparesExpressionsWithTheDefinition(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/database")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "operator.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "cel: object.spec.size", "cel: object.spec.siez", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := serve.Check(os.DirFS(dir), "operator.yaml", serve.Dir(dir)); err == nil || !strings.Contains(err.Error(), "undefined field 'siez'") {
		t.Errorf("got %v", err)
	}
}

func TestHandlersOfAFileAndOfGoLiveInOneOperator(t *testing.T) {
	dir := operator(t, "      - {id: file, on: [create], template: {status: {file: true}}}\n", nil)
	op := gopf.New(gopf.Identity("both.example.com"))
	op.Resource(things).OnCreate("code", func(_ ctx, c *gopf.Change[gopf.Unstructured]) error {
		c.Patch.Set("status.code", true)
		return nil
	})
	if err := serve.Load(op, os.DirFS(dir), "operator.yaml", serve.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	if op.Settings.Execution.DefaultBackoff != 10*time.Millisecond {
		t.Errorf("the backoff is %v", op.Settings.Execution.DefaultBackoff)
	}
	c := gopftest.NewCluster(t, things)
	gopftest.Start(t, op, c)
	c.Create(t, thing("a", map[string]any{}))
	waitStatus(t, c, "a", "file", true)
	waitStatus(t, c, "a", "code", true)
}

// Children with more than 24 KiB are listed twice, and the hook gets them once.
func TestAHookGetsLargeChildren(t *testing.T) {
	inputs := make(chan map[string]any, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		inputs <- in
		_, _ = io.WriteString(w, `{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "`+strings.Repeat("x", 100<<10)+`"}}]}`)
	}))
	defer server.Close()
	c := start(t, operator(t, "      - {id: children, reconcile: {owns: [v1/configmaps]}, http: {url: '"+server.URL+"'}}\n", nil), "v1/configmaps")
	owner := c.Create(t, thing("a", map[string]any{}))
	<-inputs
	c.Wait(t, "v1/configmaps", "default", "x", func(*unstructured.Unstructured) bool { return true })
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "forged", "namespace": "default", "labels": map[string]any{"gopf.dev/children": "other"},
			"ownerReferences": []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": string(owner.GetUID())}}},
	}})
	c.Patch(t, things, "default", "a", map[string]any{"spec": map[string]any{"size": 1}})
	for in := range inputs {
		if size, _, _ := unstructured.NestedFloat64(in, "object", "spec", "size"); size != 1 {
			continue
		}
		live, _, _ := unstructured.NestedMap(in, "children", "ConfigMap.v1")
		data, _, _ := unstructured.NestedString(live, "x", "data", "a")
		if len(live) != 1 || len(data) != 100<<10 {
			t.Errorf("got %d children, with %d bytes", len(live), len(data))
		}
		return
	}
}
