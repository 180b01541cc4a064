package ngrok

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/webhook"
)

// fake is a public endpoint on this machine.
type fake struct{ net.Listener }

func (f fake) URL() string { return "http://" + f.Addr().String() + "/" }

// opener returns the errors first, and then opens fake endpoints.
type opener struct {
	failures []error
	opened   chan fake
}

func (o *opener) open(ctx context.Context) (Endpoint, error) {
	if len(o.failures) > 0 {
		err := o.failures[0]
		o.failures = o.failures[1:]
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o.opened <- fake{l}
	return fake{l}, nil
}

func echo(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path) }

func post(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

func TestReviewsArriveThroughReopenedTunnels(t *testing.T) {
	o := &opener{opened: make(chan fake, 5)}
	ctx, cancel := context.WithCancel(t.Context())
	announced := make(chan webhook.ClientConfig, 5)
	ended := make(chan error, 1)
	tunnel := Tunnel{Path: "/hooks/", Open: o.open}.Bind(webhook.Environment{Log: slog.New(slog.DiscardHandler)})
	go func() {
		ended <- tunnel.Serve(ctx, http.HandlerFunc(echo), func(c webhook.ClientConfig) { announced <- c })
	}()

	first := <-o.opened
	c := <-announced
	if c.CABundle != nil || c.Service != nil || !strings.HasSuffix(c.URL, "/hooks") {
		t.Errorf("got %+v", c)
	}
	if got := post(t, c.URL+"/check/me"); got != "POST /check/me" {
		t.Errorf("got %s", got)
	}

	first.Close() // it breaks, and is opened again
	<-o.opened
	again := <-announced
	if got := post(t, again.URL+"/again"); again.URL == c.URL || got != "POST /again" {
		t.Errorf("got %s at %s", got, again.URL)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.DialTimeout("tcp", strings.TrimSuffix(strings.TrimPrefix(again.URL, "http://"), "/hooks"), time.Second); err == nil {
		t.Error("the tunnel is still open")
	}
}

func TestAnErrorAtTheFirstTunnelIsReturned(t *testing.T) {
	o := &opener{failures: []error{errors.New("wrong token")}}
	err := Tunnel{Open: o.open}.Serve(t.Context(), http.HandlerFunc(echo), func(webhook.ClientConfig) { t.Error("the server was announced") })
	if err == nil || !strings.Contains(err.Error(), "wrong token") {
		t.Errorf("got %v", err)
	}
}

func TestTheTunnelOfTheSDKNeedsAnAccount(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // tests must not reach ngrok
	if end, err := (Tunnel{Token: "none", Region: "eu", Domain: "x.example"}).open(ctx); err == nil {
		end.Close()
		t.Error("the tunnel was opened")
	}
}
