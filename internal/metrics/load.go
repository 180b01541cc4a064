package metrics

import "github.com/prometheus/client_golang/prometheus"

// LoadGauges describe the load of an operator.
type LoadGauges struct {
	Handlers int // calls of handlers, daemons and timers in progress

	Limit    float64 // maximum number of requests in flight; it adapts to the server
	InFlight int     // requests in flight
	Waiting  int     // requests that wait for others to finish
}

// loadGauges are the gauges of the load with their metrics.
var loadGauges = []struct {
	desc  *prometheus.Desc
	value func(LoadGauges) float64
}{
	{describe("gopf_handlers_running", "Calls of handlers, daemons and timers in progress."),
		func(l LoadGauges) float64 { return float64(l.Handlers) }},
	{describe("gopf_api_requests_limit", "Maximum number of requests to the Kubernetes API in flight; it adapts to the server."),
		func(l LoadGauges) float64 { return l.Limit }},
	{describe("gopf_api_requests_in_flight", "Requests to the Kubernetes API in flight, without watches."),
		func(l LoadGauges) float64 { return float64(l.InFlight) }},
	{describe("gopf_api_requests_waiting", "Requests to the Kubernetes API that wait because of the limit."),
		func(l LoadGauges) float64 { return float64(l.Waiting) }},
}
