package life_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// newOperator makes an operator that meets nobody and recovers from errors
// faster than usual.
func newOperator() *gopf.Operator {
	op := gopf.New()
	op.Settings.Peering.Standalone = true
	op.Settings.Networking.ErrorDelays = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}
	op.Settings.Queueing.ErrorDelays = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond}
	op.Settings.Execution.DefaultBackoff = 200 * time.Millisecond
	return op
}

// operator is one that runs.
type operator struct {
	*kit.Operator
	t     *testing.T
	ready chan struct{}
}

// start runs the operator in the namespace until it is stopped or the test ends.
// Later options override those.
func (s *space) start(op *gopf.Operator, options ...gopf.RunOption) *operator {
	s.T.Helper()
	o := &operator{t: s.T, ready: make(chan struct{})}
	o.Operator = kit.Start(s.T, kit.NewTitledLogbook(s.T, "the operator's log"), func(ctx context.Context, log *slog.Logger) error {
		return op.Run(ctx, append([]gopf.RunOption{
			gopf.Cluster(rest.CopyConfig(cluster)), gopf.Namespaces(s.Name), gopf.Log(log), gopf.WhenReady(func() { close(o.ready) }),
		}, options...)...)
	})
	return o
}

// serving waits until the operator serves.
func (o *operator) serving() *operator {
	o.t.Helper()
	select {
	case <-o.ready:
	case <-o.Ended:
		o.t.Fatalf("the operator has ended: %v", o.Err)
	case <-time.After(kit.Patience):
		o.t.Fatal("the operator does not begin to serve")
	}
	return o
}

// Stop ends the operator gracefully, which must not fail.
func (o *operator) Stop() {
	o.t.Helper()
	o.Cancel()
	if err := o.Wait(); err != nil {
		o.t.Errorf("the operator has failed: %v", err)
	}
}

// diary is what handlers note down.
type diary struct{ kit.Diary }

// handles declares handlers that note what they handle under a name.
func (d *diary) handles(op *gopf.Operator, name string) *gopf.Resource[*Example] {
	x := gopf.For[*Example](op, examples)
	note := func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("%s %s %s", name, c.Reason, c.Object.Spec.Field)
		return nil
	}
	x.OnCreate("create", note)
	x.OnUpdate("update", note)
	return x
}

// fetch asks for a page; the code is 0 if there is no answer.
func fetch(url string) (code int, body string) {
	client := &http.Client{Timeout: kit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// waitCode waits until a page answers with the code, and returns what it says.
func waitCode(t *testing.T, url string, code int) (body string) {
	t.Helper()
	kit.Await(t, fmt.Sprintf("%s answers with %d", url, code), func() bool {
		var got int
		got, body = fetch(url)
		return got == code
	})
	return body
}

// waitPage waits until a page responds with the code and contains the texts.
func waitPage(t *testing.T, url string, code int, texts ...string) {
	t.Helper()
	kit.Eventually(t, func() error {
		got, body := fetch(url)
		if got != code || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(body, text) }) {
			return fmt.Errorf("%s responds with %d, want %d with %q:\n%s", url, got, code, texts, body)
		}
		return nil
	})
}

func withCluster(config *rest.Config) gopf.RunOption { return gopf.Cluster(config) }

// longHandler waits until it is cancelled, and tells why it was; but only for
// objects whose field is "long".
func longHandler(d *diary, cancelled chan<- error) gopf.ChangeFunc[*Example] {
	return func(ctx context.Context, c *gopf.Change[*Example]) error {
		if c.Object.Spec.Field != "long" {
			return nil
		}
		d.Add("it takes long")
		<-ctx.Done()
		cancelled <- context.Cause(ctx)
		return ctx.Err()
	}
}
