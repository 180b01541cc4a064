package top

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Activity is the activity of an operator as data. Rates are per second, durations are in
// seconds. nil means that a value is not known.
type Activity struct {
	State     string     `json:"state"`   // working, paused or on standby
	Running   float64    `json:"running"` // calls
	InFlight  float64    `json:"inFlight"`
	Waiting   float64    `json:"waiting"`
	Limit     float64    `json:"limit"`
	Resources []Resource `json:"resources"`
	Handlers  []Handler  `json:"handlers"` // the slowest first
	Requests  []Requests `json:"requests"`
}

// Resource is the activity of one resource.
type Resource struct {
	Name     string   `json:"name"`
	Watching float64  `json:"watching"`
	Listing  float64  `json:"listing"`
	Failing  float64  `json:"failing"`
	Events   *float64 `json:"events"`
	Queued   float64  `json:"queued"`
	Oldest   float64  `json:"oldest"`
	Retries  float64  `json:"retries"`
	Paused   float64  `json:"paused"`
	Daemons  float64  `json:"daemons"`
	Timers   float64  `json:"timers"`
}

// Handler is the activity of one handler.
type Handler struct {
	ID       string   `json:"id"`
	Resource string   `json:"resource"`
	Calls    float64  `json:"calls"`
	Failed   float64  `json:"failed"`
	Mean     float64  `json:"mean"`
	Rate     *float64 `json:"rate"`
	Median   *float64 `json:"median"`
	P95      *float64 `json:"p95"`
}

// Requests is the activity of one verb.
type Requests struct {
	Verb       string   `json:"verb"`
	Total      float64  `json:"total"`
	Conflicts  float64  `json:"conflicts"`
	Throttled  float64  `json:"throttled"`
	NoResponse float64  `json:"noResponse"`
	Rate       *float64 `json:"rate"`
	Median     *float64 `json:"median"`
	P95        *float64 `json:"p95"`
}

// Point is the activity of the whole operator between two samples, for a diagram.
type Point struct {
	At       time.Time `json:"at"`
	Events   float64   `json:"events"` // per second
	Calls    float64   `json:"calls"`
	Failures float64   `json:"failures"`
	Requests float64   `json:"requests"`
	Queued   float64   `json:"queued"`
	Retries  float64   `json:"retries"`
	Running  float64   `json:"running"`
	Oldest   float64   `json:"oldest"` // seconds
	Median   *float64  `json:"median"` // seconds of a call; nil means that there was none
	P95      *float64  `json:"p95"`
}

// ActivityOf returns the activity. before is an earlier sample, for rates; it may be nil.
func ActivityOf(now, before *Sample, elapsed time.Duration) Activity {
	r := rates{now, before, elapsed}
	all := map[string]string{}
	a := Activity{
		State: now.state(), Running: now.sum("gopf_handlers_running", all), InFlight: now.sum("gopf_api_requests_in_flight", all),
		Waiting: now.sum("gopf_api_requests_waiting", all), Limit: now.sum("gopf_api_requests_limit", all),
		Resources: []Resource{}, Handlers: []Handler{}, Requests: []Requests{},
	}
	for _, name := range now.values("gopf_queue_depth", "resource") {
		of := map[string]string{"resource": name}
		in := func(state string) float64 {
			return now.sum("gopf_streams", map[string]string{"resource": name, "state": state})
		}
		a.Resources = append(a.Resources, Resource{
			Name: name, Watching: in("watching"), Listing: in("listing"), Failing: in("failing"),
			Events: r.perSecond("gopf_stream_events_total", of),
			Queued: now.sum("gopf_queue_depth", of), Oldest: now.sum("gopf_queue_oldest_age_seconds", of),
			Retries: now.sum("gopf_retries_waiting", of), Paused: now.sum("gopf_paused_objects", of),
			Daemons: now.sum("gopf_daemons_running", of), Timers: now.sum("gopf_timers_waiting", of),
		})
	}
	for _, c := range r.calledHandlers() {
		of := map[string]string{"handler": c.handler, "resource": c.resource}
		a.Handlers = append(a.Handlers, Handler{
			ID: c.handler, Resource: c.resource, Calls: c.calls, Failed: c.failed, Mean: c.mean(),
			Rate:   r.perSecond("gopf_handler_duration_seconds_count", of),
			Median: quantile(0.5, now, nil, "gopf_handler_duration_seconds", of), P95: quantile(0.95, now, nil, "gopf_handler_duration_seconds", of),
		})
	}
	for _, verb := range now.values("gopf_api_requests_total", "verb") {
		of := map[string]string{"verb": verb}
		code := func(code string) float64 {
			return now.sum("gopf_api_requests_total", map[string]string{"verb": verb, "code": code})
		}
		a.Requests = append(a.Requests, Requests{
			Verb: verb, Total: now.sum("gopf_api_requests_total", of), Conflicts: code("409"), Throttled: code("429"), NoResponse: code("0"),
			Rate:   r.perSecond("gopf_api_requests_total", of),
			Median: quantile(0.5, now, nil, "gopf_api_request_duration_seconds", of), P95: quantile(0.95, now, nil, "gopf_api_request_duration_seconds", of),
		})
	}
	return a
}

// PointOf returns the activity between two samples.
func PointOf(at time.Time, now, before *Sample, elapsed time.Duration) Point {
	r := rates{now, before, elapsed}
	rate := func(metric string, labels map[string]string) float64 {
		if v := r.perSecond(metric, labels); v != nil {
			return *v
		}
		return 0
	}
	p := Point{
		At: at, Events: rate("gopf_stream_events_total", nil), Calls: rate("gopf_handler_duration_seconds_count", nil), Requests: rate("gopf_api_requests_total", nil),
		Queued: now.sum("gopf_queue_depth", nil), Retries: now.sum("gopf_retries_waiting", nil), Running: now.sum("gopf_handlers_running", nil),
		Median: quantile(0.5, now, before, "gopf_handler_duration_seconds", nil), P95: quantile(0.95, now, before, "gopf_handler_duration_seconds", nil),
	}
	for _, outcome := range []string{"failed", "retried", "ignored"} {
		p.Failures += rate("gopf_handler_runs_total", map[string]string{"outcome": outcome})
	}
	for _, one := range now.series {
		if one.name == "gopf_queue_oldest_age_seconds" {
			p.Oldest = max(p.Oldest, one.value)
		}
	}
	return p
}

// state returns whether the operator works.
func (s *Sample) state() string {
	switch {
	case s.sum("gopf_paused", nil) > 0:
		return "paused"
	case s.sum("gopf_leading", nil) == 0:
		return "on standby"
	}
	return "working"
}

// quantile estimates a quantile of the observations between two samples from the buckets
// of a histogram. nil means that there were none.
func quantile(q float64, now, before *Sample, metric string, labels map[string]string) *float64 {
	counts := map[float64]float64{}
	add := func(s *Sample, sign float64) {
		if s == nil {
			return
		}
		for _, one := range s.series {
			if one.name != metric+"_bucket" || !matches(one.labels, labels) {
				continue
			}
			if limit, err := strconv.ParseFloat(strings.TrimPrefix(one.labels["le"], "+"), 64); err == nil {
				counts[limit] += sign * one.value
			}
		}
	}
	add(now, 1)
	add(before, -1)
	limits := make([]float64, 0, len(counts))
	for limit := range counts {
		limits = append(limits, limit)
	}
	slices.SortFunc(limits, cmp.Compare[float64])
	if len(limits) == 0 || counts[limits[len(limits)-1]] <= 0 {
		return nil
	}
	wanted := q * counts[limits[len(limits)-1]]
	lower, below := 0.0, 0.0
	for _, limit := range limits {
		if n := counts[limit]; n >= wanted {
			if math.IsInf(limit, 1) || n == below {
				return &lower
			}
			v := lower + (limit-lower)*(wanted-below)/(n-below)
			return &v
		}
		lower, below = limit, counts[limit]
	}
	return &lower
}
