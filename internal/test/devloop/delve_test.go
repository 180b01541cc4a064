//go:build unix && gopf_delve

package devloop

import (
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// delve is a client of the debugger.
type delve struct {
	t *testing.T
	*rpc.Client
}

func (d delve) call(method string, args, reply any) {
	d.t.Helper()
	if err := d.Call("RPCServer."+method, args, reply); err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
}

// While a breakpoint holds a handler for longer than the default duration of a lease, the
// operator stays the leader. Afterwards the handler returns, and its record is written.
func TestTheDebuggerDoesNotLoseTheLease(t *testing.T) {
	s := begin(t, "--memory", "--debug", "--", "run", "--all-namespaces", "--standalone", "--dev", "--verbose", "--election=lease", "--election-namespace=default")
	client, err := jsonrpc.Dial("tcp", "127.0.0.1:2345")
	if err != nil {
		t.Fatal(err)
	}
	d := delve{t, client}
	var state, made any
	d.call("Command", map[string]any{"name": "halt"}, &state)
	d.call("CreateBreakpoint", map[string]any{"Breakpoint": map[string]any{"name": "note", "functionName": "main.note"}}, &made)
	stopped := make(chan error, 1)
	go func() {
		var state any
		stopped <- client.Call("RPCServer.Command", map[string]any{"name": "continue"}, &state)
	}()
	if _, err := s.objects.Namespace("default").Patch(t.Context(), "sample", types.MergePatchType,
		[]byte(`{"spec":{"who":"held"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(limit):
		t.Fatalf("the breakpoint was not reached:\n%s", s.said.String())
	}
	time.Sleep(holding(t))
	if strings.Contains(s.handled(), "held") {
		t.Fatal("the handler ran to its end in spite of the breakpoint")
	}
	d.call("ClearBreakpoint", map[string]any{"Name": "note"}, &made)
	go func() {
		var state any
		_ = client.Call("RPCServer.Command", map[string]any{"name": "continue"}, &state) // it returns when the operator ends
	}()
	s.eventually("the handler returns", func() bool { return strings.Contains(s.handled(), "held") })
	s.eventually("its record is written", func() bool {
		sample, err := s.objects.Namespace("default").Get(t.Context(), "sample", metav1.GetOptions{})
		return err == nil && strings.Contains(string(must(sample.MarshalJSON())), `\"who\":\"held\"`)
	})
	if said := s.said.String(); strings.Contains(said, "lost") || strings.Contains(said, "the operator exited") {
		t.Errorf("the lease was lost:\n%s", said)
	}

	// Without the debugger, the next operator gets the lease at once.
	s.press("d")
	s.says("reload → built", "→ swapped")
	s.replace("operator.go", "const edit = 0", "const edit = 1")
	s.says("operator.go saved → built", "→ swapped")
	if _, err := s.objects.Namespace("default").Patch(t.Context(), "sample", types.MergePatchType,
		[]byte(`{"spec":{"who":"free"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the next operator handles the object", func() bool { return strings.Contains(s.handled(), "\n1 sample \"held\" \"free\"") })
	check(t, s.handled())
}

// holding returns how long the breakpoint is held: longer than a lease lasts by default,
// which is 15 s. The variable GOPF_HOLD sets another duration.
func holding(t *testing.T) time.Duration {
	text, ok := os.LookupEnv("GOPF_HOLD")
	if !ok || text == "" {
		return 25 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("GOPF_HOLD: %v", err)
	}
	return d
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
