package serve_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve"
)

func TestAProgramReachesTheClusterOnAnyCluster(t *testing.T) {
	t.Parallel()
	dir := operator(t, "      - {id: h, on: [create], exec: [./h], cluster: true}\n      - {id: none, on: [create], exec: [./h]}\n", map[string]string{
		"h": `test "$GOPF_HANDLER" = none && echo "{\"status\": {\"none\": \"$KUBECONFIG.\"}}" && exit
echo "{\"status\": {\"file\": \"$KUBECONFIG\", \"mode\": \"$(ls -l "$KUBECONFIG" | cut -c1-10)\", \"text\": \"$(base64 "$KUBECONFIG" | tr -d '\n')\"}}"`,
	})
	c := gopftest.AnyCluster(t, things)
	ns := c.Namespace(t)
	op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	op.Settings.Peering.Standalone = true // other tests define peerings
	gopftest.Start(t, op, c, gopf.Namespaces(ns))
	obj := thing("a", map[string]any{})
	obj.SetNamespace(ns)
	c.Create(t, obj)
	var status map[string]string
	c.Wait(t, things, ns, "a", func(o *unstructured.Unstructured) bool {
		status, _, _ = unstructured.NestedStringMap(o.Object, "status")
		return status["file"] != "" && status["none"] != ""
	})
	if status["mode"] != "-rw-------" || status["none"] != "." {
		t.Errorf("the mode is %s, and without the setting the variable is %s", status["mode"], status["none"])
	}
	if _, err := os.Stat(status["file"]); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig was not removed: %v", err)
	}
	text, err := decodeBase64(status["text"])
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil || config.Host != c.RESTConfig().Host {
		t.Fatalf("got %v, %v", config, err)
	}
	if !c.Real() {
		return // a cluster in memory has no address
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}).Namespace(ns).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the credentials do not work: %v", err)
	}
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestActivitiesRunAtTheStartTheEndAndForProbes(t *testing.T) {
	port, log := freePort(t), filepath.Join(t.TempDir(), "log")
	dir := t.TempDir()
	text := fmt.Sprintf(`apiVersion: gopf.dev/v1
kind: Operator
metadata: {name: things}
settings: {health: {liveness: "http://127.0.0.1:%d/healthz"}}
startup: [{id: first, exec: [./act], env: [LOG=%s], backoff: 10ms}]
cleanup: [{id: last, exec: [./act], env: [LOG=%s]}]
probes: [{id: size, cel: "{'result': 40 + 2}"}]
resources: [{resource: example.com/v1/things, handlers: [{id: h, on: [create], cel: "null"}]}]
`, port, log, log)
	script := `#!/bin/sh
echo "$GOPF_HANDLER $GOPF_REASON $GOPF_RETRY" >> $LOG
test "$GOPF_REASON-$GOPF_RETRY" != startup-0
`
	for name, body := range map[string]string{"operator.yaml": text, "act": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o700); err != nil { //nolint:gosec // it must be executable
			t.Fatal(err)
		}
	}
	op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	stop := gopftest.Start(t, op, gopftest.NewCluster(t, things))
	probed := ""
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(probed, `"size": 42`) && !strings.Contains(probed, `"size":42`); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the probe responds with %q", probed)
		}
		if resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port)); err == nil {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			probed = string(body)
		}
	}
	stop()
	if got, err := os.ReadFile(log); err != nil || string(got) != "first startup 0\nfirst startup 1\nlast cleanup 0\n" {
		t.Errorf("got %s, %v", got, err)
	}
}

// pythonHook is a kept program in Python.
const pythonHook = `#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    size = call["object"]["spec"]["size"]
    print(json.dumps({"id": call["id"], "status": {"python": size * 2}}), flush=True)
`

// goHook is a program in Go.
const goHook = `package main

import (
	"encoding/json"
	"os"
)

func main() {
	var call struct {
		Object struct{ Spec struct{ Size int } }
	}
	if err := json.NewDecoder(os.Stdin).Decode(&call); err != nil {
		os.Exit(65)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"status": map[string]any{"go": call.Object.Spec.Size * 3}})
}
`

func TestHooksInPythonAndGo(t *testing.T) {
	handlers, wanted := "      - {id: go, on: [create], exec: [./hook]}\n", map[string]any{"go": int64(21)}
	python, err := exec.LookPath("python3")
	if err == nil && exec.Command(python, "-c", "import json").Run() == nil {
		handlers += "      - {id: python, on: [create], exec: [python3, hook.py], keep: true, env: [PYENV_VERSION]}\n"
		wanted["python"] = int64(14)
	} else {
		t.Log("There is no python3: only Go was tested.")
	}
	dir := operator(t, handlers, nil)
	source := filepath.Join(t.TempDir(), "main.go")
	for file, text := range map[string]string{filepath.Join(dir, "hook.py"): pythonHook, source: goHook} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "hook"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := start(t, dir)
	c.Create(t, thing("a", map[string]any{"size": int64(7)}))
	for field, value := range wanted {
		waitStatus(t, c, "a", field, value)
	}
}
