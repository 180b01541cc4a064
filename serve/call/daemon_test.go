//go:build unix

package call

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gopf.dev/gopf/serve/spec"
)

// household has daemons that put a file into a folder while they run.
type household struct {
	t      *testing.T
	dir    string
	daemon *Daemon
	log    *slog.Logger
	calls  sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

func newHousehold(t *testing.T, n int, log *slog.Logger) *household {
	h := &household{t: t, dir: t.TempDir(), log: log}
	h.daemon = NewDaemon(script(`f=`+h.dir+`/$GOPF_NAMESPACE-$GOPF_NAME; trap 'rm $f; exit 0' TERM; : >$f; while :; do sleep 0.02; done`,
		func(c *spec.Call) { c.Processes = n }))
	h.ctx, h.cancel = context.WithCancel(t.Context())
	return h
}

func (h *household) start(namespace string, names ...string) {
	for _, name := range names {
		h.calls.Go(func() {
			r := of(namespace, name)
			r.Log = h.log
			if _, err := h.daemon.Call(h.ctx, r); !errors.Is(err, context.Canceled) {
				h.t.Errorf("%s/%s: got %v", namespace, name, err)
			}
		})
	}
}

func (h *household) running(pattern string) int {
	found, _ := filepath.Glob(filepath.Join(h.dir, pattern))
	return len(found)
}

func TestTheProgramsOfDaemonsAreLimited(t *testing.T) {
	var b strings.Builder
	h := newHousehold(t, 4, slog.New(slog.NewTextHandler(&b, nil)))
	h.start("many", "a", "b", "c", "d", "e", "f", "g", "h")
	waitFor(t, "three quarters of the programs", func() bool { return h.running("many-*") == 3 })
	h.start("other", "a")
	waitFor(t, "the daemon of another namespace", func() bool { return h.running("other-*") == 1 })
	h.start("third", "a")
	waitFor(t, "the daemon of a third namespace", func() bool { return h.running("third-*") == 1 })
	if n := h.running("*"); n > 4 {
		t.Errorf("%d programs run", n)
	}
	h.cancel()
	h.calls.Wait()
	if n := h.running("*"); n > 0 {
		t.Errorf("%d programs are left", n)
	}
	if text := b.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "namespace=many limit=4 namespaceLimit=3") {
		t.Errorf("logged %s", text)
	}
}

func TestTheEndOfADaemonStartsTheNext(t *testing.T) {
	dir := t.TempDir()
	d := NewDaemon(script(`: >`+dir+`/$GOPF_NAME; sleep 0.02; echo '{"result": 1}'`, func(c *spec.Call) { c.Processes = 2 }))
	var calls sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		calls.Go(func() {
			if out, err := d.Call(t.Context(), of("ns", name)); err != nil || out.Result != int64(1) {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
	calls.Wait()
	if files, _ := os.ReadDir(dir); len(files) != 5 {
		t.Errorf("%d programs ran", len(files))
	}
}
