// Package metrics counts and measures what an operator does, for Prometheus.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are those of one operator.
type Metrics struct {
	registry *prometheus.Registry
}

// New makes the metrics of an operator.
func New() *Metrics { return &Metrics{registry: prometheus.NewRegistry()} }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
