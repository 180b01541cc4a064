package engine

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/metrics"
)

// Health says where the operator tells how it is.
type Health struct {
	Liveness string // the URL of probes; "" for none
	Address  string // of /livez and /readyz; "" for none
	Metrics  string // the address of /metrics; "" for none
	Pprof    string // the address of /debug/pprof/; "" for none
	Strict   bool   // not ready if not all handlers can be served

	Collectors []prometheus.Collector // of the program, for /metrics

	// Probes collects what probes find; nil for nothing.
	Probes func(ctx context.Context) (map[string]any, error)
	// Listening is told where everything is served; may be nil.
	Listening func(health.Addresses)
}

// listen opens what others ask at how the operator is. It returns nil if there is
// nowhere to listen.
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

// newMetrics are what is counted, if anybody asks for it.
func newMetrics(c Config) (*metrics.Metrics, error) {
	if c.Health.Metrics == "" {
		return nil, nil
	}
	return metrics.New(metrics.Options{Version: c.Version, Collectors: c.Health.Collectors})
}
