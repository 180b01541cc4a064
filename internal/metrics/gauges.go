package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges describe an operator at one moment.
type Gauges struct {
	// Resources are the served resources. Several entries of one resource are added up.
	Resources []ResourceGauges
	// Indices are the numbers of entries in the indices, by id.
	Indices map[string]int
	// Load is the current load of the operator.
	Load LoadGauges

	Paused  bool // by another operator
	Leading bool // also true without leader election

	// Problems is the number of declarations that cannot be served: forbidden, missing
	// and ambiguous resources.
	Problems int

	// Reviews are the admission reviews at this moment.
	Reviews ReviewGauges
}

// ReviewGauges describe the current admission reviews.
type ReviewGauges struct {
	Waiting  int           // for capacity
	Oldest   time.Duration // age of the first of them
	InFlight int           // being handled
	Bytes    int64         // of the bodies of all reviews, including incoming ones

	// CertificateExpiry is the expiry time of the webhook server's certificate. Zero
	// means that there is none.
	CertificateExpiry time.Time
}

// ResourceGauges describe the objects of one resource.
type ResourceGauges struct {
	Resource string

	Listing, Watching, Failing int           // streams
	Silence                    time.Duration // of the stream that has been silent for the longest time

	Queued      int           // objects that wait for a turn or have one
	QueuedBytes int           // of waiting events
	Oldest      time.Duration // age of the first of them

	Retries     int           // objects with handlers that will be called again later
	OldestRetry time.Duration // age of the first of them

	Daemons int // running
	Timers  int // waiting for their next call

	Paused int // objects that are paused by an annotation
}

// Observe sets the function that returns the gauges for each scrape. It must not block,
// and may be called concurrently. nil removes it.
func (m *Metrics) Observe(look func() Gauges) {
	switch {
	case m == nil:
	case look == nil:
		m.gauges.Store(nil)
	default:
		m.gauges.Store(&look)
	}
}

// gaugeCollector collects the gauges at each scrape.
type gaugeCollector struct{ m *Metrics }

// gauge is one number of a resource with its metric.
type gauge struct {
	desc   *prometheus.Desc
	labels []string // besides the resource
	value  func(ResourceGauges) float64
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	streamsDesc = describe("gopf_streams", "Streams by state.", "resource", "state")
	indexDesc   = describe("gopf_index_entries", "Entries of an index.", "index")
	pausedDesc  = describe("gopf_paused", "1 while the operator is paused by a peer.")
	leadingDesc = describe("gopf_leading", "1 if the operator may act, 0 while it is on standby.")
	problemDesc = describe("gopf_unserved_declarations", "Declarations that cannot be served because their resources are forbidden, missing or ambiguous.")

	reviewsWaitingDesc = describe("gopf_webhook_reviews_waiting", "Admission reviews that wait for capacity.")
	reviewsOldestDesc  = describe("gopf_webhook_reviews_oldest_age_seconds", "Age of the first waiting admission review.")
	reviewsFlightDesc  = describe("gopf_webhook_reviews_in_flight", "Admission reviews that are being handled.")
	reviewBytesDesc    = describe("gopf_webhook_review_bytes", "Size of the admission reviews that are received, wait or are being handled.")
	certificateDesc    = describe("gopf_webhook_certificate_expiry_timestamp_seconds", "When the certificate of the webhook server expires, in seconds since 1970.")

	resourceGauges = []gauge{
		{streamsDesc, []string{"listing"}, func(r ResourceGauges) float64 { return float64(r.Listing) }},
		{streamsDesc, []string{"watching"}, func(r ResourceGauges) float64 { return float64(r.Watching) }},
		{streamsDesc, []string{"failing"}, func(r ResourceGauges) float64 { return float64(r.Failing) }},
		{describe("gopf_stream_silence_seconds", "Time since the server last sent data on the most silent stream.", "resource"),
			nil, func(r ResourceGauges) float64 { return r.Silence.Seconds() }},
		{describe("gopf_queue_depth", "Objects that wait for a turn or have one.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Queued) }},
		{describe("gopf_queue_bytes", "Size of the events that wait.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.QueuedBytes) }},
		{describe("gopf_queue_oldest_age_seconds", "Age of the first waiting event.", "resource"),
			nil, func(r ResourceGauges) float64 { return r.Oldest.Seconds() }},
		{describe("gopf_retries_waiting", "Objects with handlers that will be called again later.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Retries) }},
		{describe("gopf_retries_oldest_age_seconds", "Age of the first waiting retry.", "resource"),
			nil, func(r ResourceGauges) float64 { return r.OldestRetry.Seconds() }},
		{describe("gopf_daemons_running", "Daemons that are running.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Daemons) }},
		{describe("gopf_timers_waiting", "Timers that wait for their next call.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Timers) }},
		{describe("gopf_paused_objects", "Objects that are paused by an annotation.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Paused) }},
	}
)

// Describe sends the descriptions of all gauges.
func (c *gaugeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, g := range loadGauges {
		to <- g.desc
	}
	for _, d := range []*prometheus.Desc{
		indexDesc, pausedDesc, leadingDesc, problemDesc,
		reviewsWaitingDesc, reviewsOldestDesc, reviewsFlightDesc, reviewBytesDesc, certificateDesc,
	} {
		to <- d
	}
	for _, g := range resourceGauges {
		to <- g.desc
	}
}

// Collect sends the current gauges.
func (c *gaugeCollector) Collect(to chan<- prometheus.Metric) {
	look := c.m.gauges.Load()
	if look == nil {
		return
	}
	now := (*look)()
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, g := range loadGauges {
		send(g.desc, g.value(now.Load))
	}
	for _, r := range sum(now.Resources) {
		for _, g := range resourceGauges {
			send(g.desc, g.value(r), append([]string{r.Resource}, g.labels...)...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(now.Indices)) {
		send(indexDesc, float64(now.Indices[id]), id)
	}
	send(pausedDesc, oneIf(now.Paused))
	send(leadingDesc, oneIf(now.Leading))
	send(problemDesc, float64(now.Problems))
	send(reviewsWaitingDesc, float64(now.Reviews.Waiting))
	send(reviewsOldestDesc, now.Reviews.Oldest.Seconds())
	send(reviewsFlightDesc, float64(now.Reviews.InFlight))
	send(reviewBytesDesc, float64(now.Reviews.Bytes))
	if at := now.Reviews.CertificateExpiry; !at.IsZero() {
		send(certificateDesc, float64(at.Unix()))
	}
}

// sum returns one entry per resource: a duplicate series would break the whole scrape.
func sum(all []ResourceGauges) []ResourceGauges {
	byName := map[string]int{}
	var sums []ResourceGauges
	for _, r := range all {
		i, found := byName[r.Resource]
		if !found {
			byName[r.Resource] = len(sums)
			sums = append(sums, r)
			continue
		}
		s := &sums[i]
		s.Listing += r.Listing
		s.Watching += r.Watching
		s.Failing += r.Failing
		s.Silence = max(s.Silence, r.Silence)
		s.Queued += r.Queued
		s.QueuedBytes += r.QueuedBytes
		s.Oldest = max(s.Oldest, r.Oldest)
		s.Retries += r.Retries
		s.OldestRetry = max(s.OldestRetry, r.OldestRetry)
		s.Daemons += r.Daemons
		s.Timers += r.Timers
		s.Paused += r.Paused
	}
	return sums
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
