//go:build unix

package call

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/serve/spec"
)

// A tenant could use these characters to make inputs six times as large.
func TestInputsHaveNoEscapesOfHTML(t *testing.T) {
	const text = "<&>"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), text) {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer server.Close()
	hook, err := NewHTTP(Options{Call: spec.Call{HTTP: &spec.HTTP{URL: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Caller{
		"exec": NewExec(script("grep -q '<&>'")), "daemon": NewDaemon(script("grep -q '<&>'")), "http": hook,
		"kept": kept(`case $line in *'<&>'*) printf '{"id": %d}\n' $id;; *) exit 1;; esac`),
	} {
		defer c.Close()
		r := request(nil)
		r.Input.Object = map[string]any{"text": text}
		if _, err := c.Call(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// gated are programs that read their input when a file exists.
type gated struct {
	*Exec
	dir string
}

func newGated(t *testing.T, inputs *queue.Budget) gated {
	t.Helper()
	g := gated{dir: t.TempDir()}
	o := script(`touch "$GOPF_NAME"; while ! [ -e go ]; do sleep 0.01; done; cat >/dev/null`, func(c *spec.Call) { c.Processes = 16 })
	o.Dir, o.Inputs = g.dir, inputs
	g.Exec = NewExec(o)
	return g
}

// call calls the program for an object of so many bytes.
func (g gated) call(ctx context.Context, namespace, name string, size int) error {
	r := request(nil)
	r.Namespace, r.Name, r.Input.Object = namespace, name, map[string]any{"text": strings.Repeat("x", size)}
	_, err := g.Call(ctx, r)
	return err
}

// begun reports whether the program runs for an object, or will within a while.
func (g gated) begun(name string) bool {
	for range 300 {
		if _, err := os.Stat(filepath.Join(g.dir, name)); err == nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestLargeInputsOfATenantWaitForEachOther(t *testing.T) {
	g := newGated(t, &queue.Budget{Size: 400 << 10, Most: 300 << 10, Patience: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls sync.WaitGroup
	defer calls.Wait()
	start := func(ctx context.Context, namespace, name string, size int) <-chan error {
		ended := make(chan error, 1)
		calls.Go(func() { ended <- g.call(ctx, namespace, name, size) })
		return ended
	}
	first := start(t.Context(), "many", "first", 1<<20) // more than all inputs
	if !g.begun("first") {
		t.Fatal("an input larger than the limit was not sent")
	}
	second := start(ctx, "many", "second", 100<<10)
	third := start(t.Context(), "many", "third", 100<<10)
	small := start(t.Context(), "many", "small", 1<<10)
	other := start(t.Context(), "other", "other", 100<<10)
	if !g.begun("small") || !g.begun("other") {
		t.Error("a small input, or an input of another tenant, waits")
	}
	if _, err := os.Stat(filepath.Join(g.dir, "second")); err == nil {
		t.Error("the second large input of a tenant did not wait")
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ended := range []<-chan error{first, third, small, other} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestAProgramThatDoesNotReadItsInputStopsNoOther(t *testing.T) {
	g := newGated(t, &queue.Budget{Size: 400 << 10, Most: 300 << 10, Patience: 10 * time.Millisecond})
	var calls sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		calls.Go(func() {
			if err := g.call(t.Context(), "many", name, 250<<10); err != nil {
				t.Error(err)
			}
		})
	}
	if !g.begun("a") || !g.begun("b") {
		t.Error("an input waits for a program that does not read")
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
}

func TestTheSizeOfAnInputIsAboutThatOfItsJSON(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"text":       {"text": strings.Repeat("x", 1000)},
		"quotes":     {"text": strings.Repeat(`"`, 1000)},
		"characters": {"text": strings.Repeat("\x01", 1000)},
		"values":     {"list": []any{"a", map[string]any{strings.Repeat("key", 100): true}, []string{strings.Repeat("y", 500)}}},
	} {
		in := Input{Object: object, Old: object, Diff: Changes{{Op: diff.Change, Path: []string{"text"}, Old: object, New: object}}, Children: map[string]map[string]any{"k": object}}
		in.Review, in.Memo = &Review{User: object}, json.RawMessage(`"`+strings.Repeat("m", 1000)+`"`)
		text, err := Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.size(); got < len(text)*9/10 || got > len(text)*11/10 {
			t.Errorf("%s: got %d, want about %d", name, got, len(text))
		}
	}
}

// A program may return values of its object. Decoded, these would take many times the memory.
func TestAnOutputWithTooManyValuesIsRefused(t *testing.T) {
	text := `{"id": 1, "result": [` + strings.Repeat("[],", 300_000) + `[]]}`
	file := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Caller{"exec": NewExec(script("cat " + file)), "kept": kept("cat " + file)} {
		defer c.Close()
		if _, err := c.Call(t.Context(), request(nil)); err == nil || !strings.HasSuffix(err.Error(), "is too large: it has more than 262144 values") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
