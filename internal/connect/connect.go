// Package connect opens the connection to a cluster: login, client and first discovery.
// It also has the commands that need no more than that, in peers.go.
package connect

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// Config configures a connection.
type Config struct {
	Login  login.Source
	Kube   kube.Options  // the observer and the source of credentials are filled in
	Stream stream.Config // for watches of the discovery
	Log    *slog.Logger

	// Wait limits the time that [Discover] waits for an API server that is not up yet. 0
	// means only a few attempts.
	Wait time.Duration
}

// Connection is an open connection to a cluster.
type Connection struct {
	Client    *kube.Client // the owner of the connection must close it
	Vault     *login.Vault // keeps the credentials valid while its Run method runs
	Namespace string       // of the login
	Config    *rest.Config // of the login
}

// Login returns the configuration of the login. It sends nothing to the API server.
func Login(ctx context.Context, c Config) (*rest.Config, error) {
	begin, err := login.New(login.Config{Login: c.Login, Log: c.Log, Jitter: c.Kube.Jitter}).Login(ctx)
	if err != nil {
		return nil, err
	}
	return begin.Config, nil
}

// Open logs in and creates the client. v observes its requests and credentials.
func Open(ctx context.Context, c Config, v *vitals.Vitals) (Connection, error) {
	v.Begin("logging in")
	vault := login.New(login.Config{
		Login: c.Login, Log: c.Log, Jitter: c.Kube.Jitter,
		Status: func(s login.Status) { v.Unauthorized(s.Err) },
	})
	begin, err := vault.Login(ctx)
	if err != nil {
		return Connection{}, err
	}
	c.Kube.Observe, c.Kube.Unauthorized = v.Request, vault.Unauthorized
	client, err := kube.NewClient(begin.Config, c.Kube)
	if err != nil {
		return Connection{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	return Connection{Client: client, Vault: vault, Namespace: begin.Namespace, Config: begin.Config}, nil
}

// firstAnswer limits each request of the discovery at startup.
const firstAnswer = 5 * time.Second

// waitPause is the interval of attempts while the operator waits for the API server.
const waitPause = time.Second

// Discover returns the resources of the cluster. By default, it makes a few attempts
// and returns the error: users do not notice an operator that waits silently for an
// unreachable cluster. With [Config.Wait], it retries for that long and logs one
// warning.
func Discover(ctx context.Context, c Config, client *kube.Client, resources *discovery.Resources) ([]kind.Info, error) {
	client = client.Derive(func(o *kube.Options) {
		o.Backoffs = slices.Values([]time.Duration{time.Second, time.Second})
		o.RequestTimeout = min(o.RequestTimeout, firstAnswer)
		o.Log = slog.New(slog.DiscardHandler) // the returned error has all details
	})
	deadline := time.Now().Add(c.Wait)
	for told := false; ; told = true {
		found, err := client.Discover(ctx)
		if err == nil {
			resources.Tell(found)
			return found.Resources, nil
		}
		if !kube.Unavailable(err) || ctx.Err() != nil || !time.Now().Before(deadline) {
			return nil, fmt.Errorf("discover the resources of the cluster: %w", err)
		}
		if !told {
			c.Log.Warn("The API server is not up yet; waiting for it.", "limit", c.Wait, "error", err)
		}
		_ = backoff.Sleep(ctx, min(c.Kube.Jitter.Shorten(waitPause, jitter.Slight), time.Until(deadline))) // the next attempt checks ctx
	}
}
