package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve"
)

const (
	website     = "testdata/website"
	websites    = "example.com/v1/websites"
	deployments = "apps/v1/deployments"
)

func site(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Website", "metadata": map[string]any{"name": "w", "namespace": namespace},
	}}
}

func newWebsites() *gopf.Operator {
	op, err := serve.New(os.DirFS(website), "operator.yaml", serve.Dir(website))
	if err != nil {
		panic(err)
	}
	return op
}

// deployed reports whether the script has recorded its success.
func deployed(o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return phase == "Deployed"
}

func TestTheWebsiteOperatorHasTwelveLines(t *testing.T) {
	lines := 0
	for _, name := range []string{"operator.yaml", "site.sh"} {
		text, err := os.ReadFile(filepath.Join(website, name))
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if lines > 12 {
		t.Errorf("it has %d lines", lines)
	}
}

func TestTheWebsiteOperatorLosesNothingWhenItCrashes(t *testing.T) {
	gopftest.CrashAtEveryWrite(t, gopftest.Life{
		Cluster:  func(t testing.TB) *gopftest.Cluster { return gopftest.NewCluster(t, websites, deployments) },
		Operator: newWebsites,
		Live: func(t testing.TB, c *gopftest.Cluster) {
			c.Create(t, site("default"))
			time.Sleep(5 * time.Minute)
			if !deployed(c.Get(t, websites, "default", "w")) {
				t.Errorf("the object is %v", c.Get(t, websites, "default", "w").Object)
			}
			if _, exists := c.Lookup(t, deployments, "default", "w"); !exists {
				t.Error("there is no Deployment")
			}
			c.Delete(t, websites, "default", "w")
			time.Sleep(5 * time.Minute)
			for _, resource := range []string{websites, deployments} {
				if o, exists := c.Lookup(t, resource, "default", "w"); exists {
					t.Errorf("it was not deleted: %v", o.Object)
				}
			}
		},
	})
}

// Variables of the process that TestMain turns into an operator.
const (
	childServer    = "GOPF_TEST_SERVE_SERVER"
	childNamespace = "GOPF_TEST_SERVE_NAMESPACE"
)

// TestMain runs the tests, or the website operator as a process that a test can kill.
func TestMain(m *testing.M) {
	server := os.Getenv(childServer)
	if server == "" {
		os.Exit(m.Run())
	}
	config := &rest.Config{Host: server, QPS: -1}
	op := newWebsites()
	op.Settings.Peering.Standalone = true // other tests define peerings
	if err := op.Run(context.Background(), gopf.Cluster(config), gopf.Namespaces(os.Getenv(childNamespace))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killer is a proxy of the API server that kills the operator at its n-th write, after the
// API server has stored it and before the operator gets the response.
type killer struct {
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	writes   int
	at       int // 0 means never
	killed   bool
	operator *os.Process
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	fatal := false
	if write := r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "reviews") && !strings.Contains(r.URL.Path, "/events"); write {
		k.writes++
		fatal = k.writes == k.at
		k.killed = k.killed || fatal
	}
	operator := k.operator
	k.mu.Unlock()
	if !fatal {
		k.proxy.ServeHTTP(w, r)
		return
	}
	k.proxy.ServeHTTP(httptest.NewRecorder(), r)
	_ = operator.Kill()
}

// run runs the operator as a process until it is killed or the context ends.
func (k *killer) run(ctx context.Context, t *testing.T, server, namespace string) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childServer+"="+server, childNamespace+"="+namespace)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	k.mu.Lock()
	err := cmd.Start()
	k.operator = cmd.Process
	k.mu.Unlock()
	if err != nil {
		t.Error(err)
		return
	}
	if _ = cmd.Wait(); cmd.ProcessState.Exited() {
		t.Errorf("the operator exited by itself:\n%s", &out)
	}
}

func TestAKilledProcessReachesTheSameEndOnAnyCluster(t *testing.T) {
	t.Parallel()
	c := gopftest.AnyCluster(t, websites, deployments)
	ns := c.Namespace(t)
	for n, writes := 0, 1; n <= writes; n++ {
		transport, err := rest.TransportFor(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		target, err := url.Parse(c.RESTConfig().Host)
		if err != nil {
			t.Fatal(err)
		}
		k := &killer{at: n, proxy: httputil.NewSingleHostReverseProxy(target)}
		k.proxy.Transport, k.proxy.FlushInterval = transport, -1
		k.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		server := httptest.NewServer(k)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				k.run(ctx, t, server.URL, ns)
			}
		})
		c.Create(t, site(ns))
		c.Wait(t, websites, ns, "w", deployed)
		if _, exists := c.Lookup(t, deployments, ns, "w"); !exists {
			t.Errorf("killed at write %d: there is no Deployment", n)
		}
		c.Delete(t, websites, ns, "w")
		c.WaitGone(t, websites, ns, "w")
		c.WaitGone(t, deployments, ns, "w")
		if n == 0 {
			k.mu.Lock()
			writes = k.writes
			k.mu.Unlock()
			measure(t, c, ns)
		}
		stop()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
		if t.Failed() || writes == 0 || n > 0 && !k.killed {
			t.Fatalf("at write %d of %d; the process was killed: %v", n, writes, k.killed)
		}
	}
}

// measure logs how long a running operator takes from the creation of an object until its
// script has succeeded and the status is written. The goal is a second on an idle machine.
func measure(t *testing.T, c *gopftest.Cluster, ns string) {
	t.Helper()
	begin := time.Now()
	c.Create(t, site(ns))
	c.Wait(t, websites, ns, "w", deployed)
	took := time.Since(begin)
	t.Logf("The object was handled within %v of its creation.", took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("the object was handled after %v", took)
	}
	c.Delete(t, websites, ns, "w")
	c.WaitGone(t, websites, ns, "w")
}

// badHook is an HTTP hook. Its first call for an object misbehaves as the name of the object
// says.
func badHook(t *testing.T, gate <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Retry  int                       `json:"retry"`
			Object unstructured.Unstructured `json:"object"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		_, way, _ := strings.Cut(in.Object.GetName(), "-")
		if in.Retry > 0 {
			way = "good"
		}
		switch way {
		case "hang", "fork": // a hook has no processes to fork: both hold the call
			<-gate
			w.WriteHeader(http.StatusInternalServerError)
		case "much":
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return // the operator has closed the connection
				}
			}
		case "signal", "stdin":
			panic(http.ErrAbortHandler)
		case "html":
			_, _ = io.WriteString(w, "<html>")
		case "half":
			conn, buffer, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"status\"")
			_ = buffer.Flush()
			_ = conn.Close()
		case "key":
			_, _ = io.WriteString(w, `{"statsu": {"phase": "done"}}`)
		default:
			_, _ = io.WriteString(w, `{"status": {"phase": "done"}}`)
		}
	}
}

// badScripts misbehave in the first call for an object, as the name of the object says.
var badScripts = map[string]string{
	"bad": `
case ${GOPF_NAME#*-}-$GOPF_RETRY in
  hang-0) while [ ! -e "$GATE" ]; do sleep 0.05; done; exit 1;;
  fork-0) (while [ ! -e "$GATE" ]; do sleep 0.05; done) & wait; exit 1;;
  much-0) head -c 1073741824 /dev/zero;;
  stdin-0) exec <&-; exit 1;;
  signal-0) kill -SEGV $$;;
  html-0) echo '<html>';;
  half-0) printf '{"status": {';;
  key-0) echo '{"statsu": {"phase": "done"}}';;
  *) echo '{"status": {"phase": "done"}}';;
esac
`,
	// The first call of a kept program may fail before it reaches the program, if that one is being
	// restarted after another call. So the calls that hang do so in any attempt.
	"kept": `
succeed() { echo "{\"id\": $1, \"status\": {\"phase\": \"done\"}}"; }
while read -r line; do
  id=$(expr "$line" : '{"id":\([0-9]*\)')
  case $line in
    *'"name":"kept-hang"'*) [ -e "$GATE" ] || { while [ ! -e "$GATE" ]; do sleep 0.05; done; exit 1; }; succeed $id;;
    *'"name":"kept-fork"'*) [ -e "$GATE" ] || { (while [ ! -e "$GATE" ]; do sleep 0.05; done) & wait; exit 1; }; succeed $id;;
    *'"retry":0'*'"name":"kept-much"'*) head -c 1073741824 /dev/zero;;
    *'"retry":0'*'"name":"kept-stdin"'*) exec <&-;;
    *'"retry":0'*'"name":"kept-signal"'*) kill -SEGV $$;;
    *'"retry":0'*'"name":"kept-html"'*) echo '<html>';;
    *'"retry":0'*'"name":"kept-half"'*) printf '{"id": %d, "status": {' $id; exit;;
    *'"retry":0'*'"name":"kept-key"'*) echo "{\"id\": $id, \"statsu\": {}}";;
    *) succeed $id;;
  esac
done
`,
}

func TestHooksThatMisbehaveKeepTheirObjectsDueAndDelayNoOthers(t *testing.T) {
	gate, opened := filepath.Join(t.TempDir(), "gate"), make(chan struct{})
	server := httptest.NewServer(badHook(t, opened))
	defer server.Close()
	dir := operator(t, `
      - {id: exec, on: [create], where: {labels: {way: exec}}, exec: [./bad], env: [GATE=`+gate+`], processes: 4}
      - {id: kept, on: [create], where: {labels: {way: kept}}, exec: [./kept], env: [GATE=`+gate+`], keep: true, processes: 4}
      - {id: http, on: [create], where: {labels: {way: http}}, http: {url: '`+server.URL+`'}}
`, badScripts)
	c := start(t, dir)
	names := []string{"hang", "fork", "much", "stdin", "signal", "html", "half", "key", "good1", "good2", "good3"}
	ways := []string{"exec", "kept", "http"}
	for _, way := range ways {
		for _, name := range names {
			o := thing(way+"-"+name, map[string]any{})
			o.SetLabels(map[string]string{"way": way})
			c.Create(t, o)
		}
	}
	// Two calls of each handler hang. All other objects are handled in the meantime.
	for _, way := range ways {
		for _, name := range names[2:] {
			waitStatus(t, c, way+"-"+name, "phase", "done")
		}
		for _, name := range names[:2] {
			if phase, found, _ := unstructured.NestedString(c.Get(t, things, "default", way+"-"+name).Object, "status", "phase"); found {
				t.Errorf("%s-%s did not hang: the phase is %s", way, name, phase)
			}
		}
	}
	close(opened)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		for _, name := range names[:2] {
			waitStatus(t, c, way+"-"+name, "phase", "done")
		}
	}
}
