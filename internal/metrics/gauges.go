package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges are what an operator is like at one moment.
type Gauges struct {
	// Resources are those being served. Several entries for one are summed up.
	Resources []ResourceGauges
	// Indices are the numbers of entries of the indices, by their ids.
	Indices map[string]int
	// Load is what the operator is busy with.
	Load LoadGauges

	Paused  bool // by another operator
	Leading bool // true also where nobody else could lead

	// Problems is how many declarations cannot be served: forbidden, missing and
	// ambiguous resources.
	Problems int

	// Reviews are the admission reviews at this moment.
	Reviews ReviewGauges
}

// ReviewGauges are what is going on with admission reviews.
type ReviewGauges struct {
	Waiting  int           // for capacity
	Oldest   time.Duration // how long the first of those has waited
	InFlight int           // being handled
	Bytes    int64         // of the bodies of all reviews, those that arrive included

	// CertificateExpiry is when the certificate of the webhook server expires. Zero if
	// there is none.
	CertificateExpiry time.Time
}

// ResourceGauges are what is going on with the objects of one resource.
type ResourceGauges struct {
	Resource string

	Listing, Watching, Failing int           // streams
	Silence                    time.Duration // of the stream that the server last said something on the longest ago

	Queued      int           // objects that wait for a turn or have one
	QueuedBytes int           // of events that wait
	Oldest      time.Duration // how long the first of those has waited

	Retries     int           // objects with handlers that will be called again later
	OldestRetry time.Duration // how long the first of those has waited

	Daemons int // running
	Timers  int // waiting for their next call
}

// Observe says where to look at the moment of a scrape. The function must not
// block, and may be called by several scrapes at a time. Nil ends that.
func (m *Metrics) Observe(look func() Gauges) {
	switch {
	case m == nil:
	case look == nil:
		m.gauges.Store(nil)
	default:
		m.gauges.Store(&look)
	}
}

// gaugeCollector asks for gauges at each scrape.
type gaugeCollector struct{ m *Metrics }

// gauge is one number of a resource, and how it is told.
type gauge struct {
	desc   *prometheus.Desc
	labels []string // besides the resource
	value  func(ResourceGauges) float64
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	streamsDesc = describe("gopf_streams", "Streams by what they are doing now.", "resource", "state")
	indexDesc   = describe("gopf_index_entries", "Entries of an index.", "index")
	pausedDesc  = describe("gopf_paused", "Whether the operator is paused because of another one.")
	leadingDesc = describe("gopf_leading", "Whether the operator may act; 0 while it stands by.")
	problemDesc = describe("gopf_unserved_declarations", "Declarations that cannot be served because their resources are forbidden, missing or ambiguous.")

	reviewsWaitingDesc = describe("gopf_webhook_reviews_waiting", "Admission reviews that wait for capacity.")
	reviewsOldestDesc  = describe("gopf_webhook_reviews_oldest_age_seconds", "How long the first of the waiting admission reviews has waited.")
	reviewsFlightDesc  = describe("gopf_webhook_reviews_in_flight", "Admission reviews that are being handled.")
	reviewBytesDesc    = describe("gopf_webhook_review_bytes", "Size of the admission reviews that arrive, wait or are being handled.")
	certificateDesc    = describe("gopf_webhook_certificate_expiry_timestamp_seconds", "When the certificate of the webhook server expires, in seconds since 1970.")

	resourceGauges = []gauge{
		{streamsDesc, []string{"listing"}, func(r ResourceGauges) float64 { return float64(r.Listing) }},
		{streamsDesc, []string{"watching"}, func(r ResourceGauges) float64 { return float64(r.Watching) }},
		{streamsDesc, []string{"failing"}, func(r ResourceGauges) float64 { return float64(r.Failing) }},
		{describe("gopf_stream_silence_seconds", "How long ago the server said something on the stream that is the most silent.", "resource"),
			nil, func(r ResourceGauges) float64 { return r.Silence.Seconds() }},
		{describe("gopf_queue_depth", "Objects that wait for their turn, or have it.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Queued) }},
		{describe("gopf_queue_bytes", "Size of the events that wait.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.QueuedBytes) }},
		{describe("gopf_queue_oldest_age_seconds", "How long the first of the waiting events has waited.", "resource"),
			nil, func(r ResourceGauges) float64 { return r.Oldest.Seconds() }},
		{describe("gopf_retries_waiting", "Objects with handlers that will be called again later.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Retries) }},
		{describe("gopf_retries_oldest_age_seconds", "How long the first of the waiting retries has waited.", "resource"),
			nil, func(r ResourceGauges) float64 { return r.OldestRetry.Seconds() }},
		{describe("gopf_daemons_running", "Daemons that are running.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Daemons) }},
		{describe("gopf_timers_waiting", "Timers that wait for their next call.", "resource"),
			nil, func(r ResourceGauges) float64 { return float64(r.Timers) }},
	}
)

// Describe tells of all gauges.
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

// Collect looks at the operator.
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

// sum makes one entry for each resource: the same series twice would spoil the
// whole scrape.
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
	}
	return sums
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
