package engine_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// An operator that cannot answer reviews yet is not ready: a rolling update would stop the
// former pod too early.
func TestAnOperatorIsReadyOnlyWhenItAnswersReviews(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	c.Create(t, example("a", "x"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	op := gopf.New()
	op.Settings.Health.Address = address
	op.Settings.Admission.Managed = "auto.kopf.dev"
	x := gopf.For[*Example](op, resource)
	fill := make(chan struct{})
	gopf.Index(x, "slow", func(ctx context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
		<-fill
		return map[string]string{s.Object.Name: "x"}, nil
	})
	x.Validate("v", func(context.Context, *gopf.Review[*Example]) error { return nil })
	ready := make(chan struct{})
	gopftest.Start(t, op, c, gopf.WhenReady(func() { close(ready) }))
	<-ready
	page := func() (code int, text string) {
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	for range 5 {
		if code, text := page(); code != http.StatusServiceUnavailable || !strings.Contains(text, "Admission reviews are not answered yet") {
			t.Fatalf("got %d %s", code, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	close(fill)
	for range 300 {
		if code, _ := page(); code == http.StatusOK {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	code, text := page()
	t.Errorf("got %d %s", code, text)
}
