// Package ngrok brings admission reviews from any cluster to an operator on a
// developer's machine: through a tunnel of ngrok.com.
//
// It is a module of its own, so that nobody else has to have its dependencies.
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

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/webhook"
)

// Tunnel is a [webhook.Server] behind a public address at ngrok. The zero value
// uses the token in the environment variable NGROK_AUTHTOKEN.
//
// TLS ends at ngrok, which sees all reviews; they are forwarded to this process
// without a local port.
type Tunnel struct {
	Token  string // of the account at ngrok; "" is that in NGROK_AUTHTOKEN
	Region string // "" is the nearest
	Domain string // a reserved one; "" is any
	Path   string // the root path of all webhooks

	// Open opens an endpoint; nil opens one at ngrok. It ends with ctx.
	Open func(ctx context.Context) (Endpoint, error)

	log    *slog.Logger
	random jitter.Source
}

var _ webhook.Server = Tunnel{}

// Endpoint is the public end of a tunnel: what comes in there is accepted here.
type Endpoint interface {
	net.Listener
	URL() string
}

// The pause before a tunnel that broke is opened anew, doubled with each attempt.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// Bind makes it log where the operator does.
func (t Tunnel) Bind(e webhook.Environment) webhook.Server {
	t.log, t.random = e.Log, e.Random
	return t
}

// Serve opens the tunnel and serves reviews until ctx is done. A tunnel that breaks
// is opened anew, maybe at another address; only if it cannot be opened at first,
// that is an error.
func (t Tunnel) Serve(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
	if t.log == nil {
		t.log = slog.Default()
	}
	if t.Open == nil {
		t.Open = t.open
	}
	pause := firstPause
	for first := true; ; first = false {
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
		t.log.Warn("The tunnel for webhooks is broken and will be opened anew.", "error", err, "pause", pause)
		select {
		case <-time.After(t.random.Shorten(pause, jitter.Slight)):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, maxPause)
	}
}

// through serves what comes through one tunnel until that breaks.
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

// open opens a tunnel with the SDK.
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
