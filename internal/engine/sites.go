package engine

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/metrics"
)

// Health configures the endpoints for health, metrics and profiles.
type Health struct {
	Liveness string // the URL of the liveness probe; "" means none
	Address  string // of /livez and /readyz; "" means none
	Metrics  string // the address of /metrics; "" means none
	Pprof    string // the address of /debug/pprof/; "" means none
	Strict   bool   // not ready while a handler has no resource to serve

	Collectors []prometheus.Collector // additional ones for /metrics

	// Probes calls the probe handlers and returns their results by id. nil means none.
	Probes func(ctx context.Context) (map[string]any, error)
	// Listening is called once with the addresses of all endpoints. May be nil.
	Listening func(health.Addresses)
}

// listen opens the configured endpoints. It returns nil without an error when none is
// configured.
func (v *vitals) listen(ctx context.Context, c Config) (*health.Server, error) {
	h := c.Health
	config := health.DefaultConfig()
	config.Liveness, config.Health, config.Metrics = h.Liveness, h.Address, h.Metrics
	config.Snapshot, config.Probes, config.MetricsHandler = v.snapshot, h.Probes, v.metrics.Handler()
	config.Log = c.Log
	config.Debug = health.LocalAddress(h.Pprof)
	if h.Liveness == "" && h.Address == "" && h.Metrics == "" && h.Pprof == "" {
		return nil, nil
	}
	site, err := health.Listen(ctx, config)
	if err == nil && h.Listening != nil {
		h.Listening(site.Addresses())
	}
	return site, err
}

// newMetrics returns the metrics. nil means that they are disabled.
func newMetrics(c Config) (*metrics.Metrics, error) {
	if c.Health.Metrics == "" {
		return nil, nil
	}
	return metrics.New(metrics.Options{Version: c.Version, Collectors: c.Health.Collectors})
}
