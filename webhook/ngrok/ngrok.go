// Package ngrok provides a webhook server behind a tunnel of ngrok.com. With it, any
// cluster can send admission reviews to an operator on a developer's machine.
//
// It is a separate module, because of its dependencies.
package ngrok

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "golang.ngrok.com/ngrok"
	"golang.ngrok.com/ngrok/config"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/webhook"
)

// Tunnel is a [webhook.Server] behind a public address at ngrok. The zero value uses the
// token in the environment variable NGROK_AUTHTOKEN.
//
// TLS ends at ngrok, so ngrok can read all reviews. They are forwarded to this process
// without a local port.
type Tunnel struct {
	Token  string // token of the ngrok account; empty means the value of NGROK_AUTHTOKEN
	Region string // empty means the nearest region
	Domain string // reserved domain; empty means a random one
	Path   string // root path of all webhooks

	// Open opens an endpoint, which ends when ctx is done. nil means an endpoint at ngrok.
	Open func(ctx context.Context) (Endpoint, error)

	log    *slog.Logger
	random jitter.Source
}

var _ webhook.Server = Tunnel{}

// Endpoint is the public end of a tunnel. Accept returns the connections made there.
type Endpoint interface {
	net.Listener
	URL() string
}

// The delay before a broken tunnel is opened again. It doubles with each attempt.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// Bind implements [webhook.Binder].
func (t Tunnel) Bind(e webhook.Environment) webhook.Server {
	t.log, t.random = e.Log, e.Random
	return t
}

// Serve opens the tunnel and serves reviews until ctx is done. It opens a broken tunnel
// again, maybe at another address. It returns an error only if the first tunnel cannot be
// opened.
func (t Tunnel) Serve(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
	if t.log == nil {
		t.log = slog.Default()
	}
	if t.Open == nil {
		t.Open = t.open
	}
	pause := firstPause
	for first := true; first || ctx.Err() == nil; first = false {
		began := time.Now()
		end, err := t.Open(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				end.Close()
			}
			return nil
		case err != nil && first:
			return fmt.Errorf("open the tunnel: %w", err)
		case err == nil:
			if err = t.through(ctx, end, reviews, announce); ctx.Err() != nil {
				return err
			}
		}
		if time.Since(began) > maxPause {
			pause = firstPause
		}
		t.log.Warn("The tunnel for webhooks broke; reopening it.", "error", err, "pause", pause)
		_ = backoff.Sleep(ctx, t.random.Shorten(pause, jitter.Slight)) // it fails only if ctx is done
		pause = min(2*pause, maxPause)
	}
	return nil
}

// through serves reviews from one tunnel until it breaks.
func (t Tunnel) through(ctx context.Context, end Endpoint, reviews http.Handler, announce func(webhook.ClientConfig)) error {
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		url := strings.TrimRight(end.URL(), "/") + "/" + strings.Trim(t.Path, "/")
		announce(webhook.ClientConfig{URL: strings.TrimRight(url, "/")})
	}()
	err := webhook.ServeListener(ctx, end, t.Path, reviews, t.log)
	<-announced
	return err
}

// open opens a tunnel with the SDK of ngrok.
func (t Tunnel) open(ctx context.Context) (Endpoint, error) {
	options := []config.HTTPEndpointOption{config.WithScheme(config.SchemeHTTPS), config.WithForwardsTo("gopf")}
	if t.Domain != "" {
		options = append(options, config.WithDomain(t.Domain))
	}
	credentials := sdk.WithAuthtokenFromEnv()
	if t.Token != "" {
		credentials = sdk.WithAuthtoken(t.Token)
	}
	return sdk.Listen(ctx, config.HTTPEndpoint(options...), credentials, sdk.WithRegion(t.Region))
}
