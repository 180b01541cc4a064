package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// open opens the listeners for health and metrics. The returned function serves
// them until its context is done.
func open(ctx context.Context, c Config) (*vitals.Vitals, func(context.Context), error) {
	config := c.Health
	config.Version, config.Inactivity, config.Log = c.Version, c.Stream.InactivityTimeout, c.Log
	v, err := vitals.New(config)
	if err != nil {
		return nil, nil, err
	}
	if counts := v.Activities(c.Activities); counts != nil && c.Counting != nil {
		c.Counting(counts)
	}
	site, err := v.Listen(ctx)
	return v, site, err
}

// connect logs in and creates the client. It sets the namespace of the login as the
// one for Kubernetes events about cluster-scoped objects.
func connect(ctx context.Context, c *Config, v *vitals.Vitals) (*kube.Client, *login.Vault, error) {
	v.Begin("logging in")
	vault := login.New(login.Config{
		Login: c.Login, Log: c.Log, Jitter: c.Kube.Jitter,
		Status: func(s login.Status) { v.Unauthorized(s.Err) },
	})
	begin, err := vault.Login(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.Posting.Namespace = begin.Namespace
	c.Kube.Observe, c.Kube.Unauthorized = v.Request, vault.Unauthorized
	client, err := kube.NewClient(begin.Config, c.Kube)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return client, vault, nil
}

// firstAnswer limits each request of the discovery at startup.
const firstAnswer = 5 * time.Second

// waitPause is the interval of attempts while the operator waits for the API server.
const waitPause = time.Second

// discover returns the resources of the cluster. By default, it makes a few attempts
// and returns the error: users do not notice an operator that waits silently for an
// unreachable cluster. With [Config.Wait], it retries for that long and logs one
// warning.
func discover(ctx context.Context, c Config, client *kube.Client, resources *discovery.Resources) ([]kind.Info, error) {
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
		select {
		case <-time.After(min(c.Kube.Jitter.Shorten(waitPause, jitter.Slight), time.Until(deadline))):
		case <-ctx.Done():
		}
	}
}
