package metrics

import "github.com/prometheus/client_golang/prometheus"

// LoadGauges are what an operator is busy with.
type LoadGauges struct {
	Handlers int // calls of handlers, daemons and timers in progress

	Limit    float64 // requests that may be in flight at the same time; it adapts to the server
	InFlight int     // requests in flight
	Waiting  int     // requests that wait until others are done
}

// loadGauges are the gauges of the load, and how they are told.
var loadGauges = []struct {
	desc  *prometheus.Desc
	value func(LoadGauges) float64
}{
	{describe("gopf_handlers_running", "Calls of handlers, daemons and timers in progress."),
		func(l LoadGauges) float64 { return float64(l.Handlers) }},
	{describe("gopf_api_requests_limit", "Requests to the Kubernetes API that may be in flight at the same time; it adapts to the server."),
		func(l LoadGauges) float64 { return l.Limit }},
	{describe("gopf_api_requests_in_flight", "Requests to the Kubernetes API in flight, watches aside."),
		func(l LoadGauges) float64 { return float64(l.InFlight) }},
	{describe("gopf_api_requests_waiting", "Requests to the Kubernetes API that wait because of the limit."),
		func(l LoadGauges) float64 { return float64(l.Waiting) }},
}
