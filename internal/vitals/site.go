package vitals

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/guard"
	"gopf.dev/gopf/internal/health"
)

// Listen opens the configured endpoints. The returned function serves them until its
// context is done. It does nothing if no endpoint is configured.
func (v *Vitals) Listen(ctx context.Context) (serve func(context.Context), err error) {
	c := v.config
	if c.Liveness == "" && c.Address == "" && c.Metrics == "" && c.Pprof == "" && c.Insight == "" {
		return func(context.Context) {}, nil
	}
	config := health.DefaultConfig()
	config.Liveness, config.Health, config.Metrics = c.Liveness, c.Address, c.Metrics
	config.Snapshot, config.Probes, config.MetricsHandler = v.snapshot, c.Probes, v.metrics.Handler()
	config.Log = c.Log
	config.Insight, config.Page = health.LocalAddress(c.Insight), v.Page
	config.Debug = health.LocalAddress(c.Pprof)
	if err := v.secure(&config); err != nil {
		return nil, err
	}
	site, err := health.Listen(ctx, config)
	if err != nil {
		return nil, err
	}
	if at := site.Addresses().Insight; at != "" {
		scheme := "http"
		if config.SecureInsight {
			scheme = "https"
		}
		c.Log.Info("Serving the page of the operator at " + scheme + "://" + at + "/")
	}
	if c.Listening != nil {
		c.Listening(site.Addresses())
	}
	return func(ctx context.Context) {
		if err := site.Run(ctx); err != nil {
			c.Log.Error("The server for health and metrics failed.", "error", err)
		}
	}, nil
}

// secure adds the certificate and the guard, if an endpoint needs them.
func (v *Vitals) secure(config *health.Config) error {
	c := v.config
	config.SecureMetrics = c.SecureMetrics && c.Metrics != ""
	config.SecureInsight = c.SecureInsight && c.Insight != ""
	if !config.SecureMetrics && !config.SecureInsight {
		return nil
	}
	certificate, err := guard.NewCertificate(c.CertFile, c.KeyFile, c.Log)
	if err != nil {
		return fmt.Errorf("serve secure endpoints: %w", err)
	}
	v.reviews = guard.New(c.Log)
	config.TLS, config.Guard = certificate.TLS(), v.reviews.Protect
	return nil
}
