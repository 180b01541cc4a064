package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// verbNames are the verbs of requests, as in RBAC rules, plus discovery. The last one
// is for all others.
var verbNames = [...]string{"get", "list", "watch", "create", "update", "patch", "delete", "discover", "other"}

func verbNumber(name string) int {
	for i, known := range verbNames {
		if known == name {
			return i
		}
	}
	return len(verbNames) - 1
}

// mostResources limits the resources that have their own series. Users may request any
// resource; further ones are counted as "other".
const mostResources = 300

// requests counts requests. It creates series on demand: not every verb is used with
// every resource, and few codes occur.
type requests struct {
	counts *prometheus.CounterVec
	times  *prometheus.HistogramVec

	mu        sync.RWMutex
	series    map[requestKey]requestSeries
	resources map[string]bool
}

type requestKey struct {
	verb     int
	resource string
	code     int
}

type requestSeries struct {
	count prometheus.Counter
	times prometheus.Observer
}

func newRequests(counts *prometheus.CounterVec, times *prometheus.HistogramVec) *requests {
	return &requests{counts: counts, times: times, series: map[requestKey]requestSeries{}, resources: map[string]bool{}}
}

// Request counts an attempt of a request to the API with its duration until the
// response was read; for a watch, until it started. code is the HTTP status, or 0 if
// there was no response. resource may be empty.
func (m *Metrics) Request(verb, resource string, code int, took time.Duration) {
	if m == nil {
		return
	}
	if code < 100 || code > 599 {
		code = 0
	}
	series := m.requests.find(requestKey{verbNumber(verb), resource, code})
	series.count.Inc()
	series.times.Observe(took.Seconds())
}

func (r *requests) find(k requestKey) requestSeries {
	r.mu.RLock()
	found, ok := r.series[k]
	r.mu.RUnlock()
	if ok {
		return found
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.resources[k.resource] {
		if len(r.resources) >= mostResources {
			k.resource = "other"
		}
		r.resources[k.resource] = true
	}
	found, ok = r.series[k]
	if !ok {
		verb := verbNames[k.verb]
		found = requestSeries{r.counts.WithLabelValues(verb, k.resource, strconv.Itoa(k.code)), r.times.WithLabelValues(verb)}
		r.series[k] = found
	}
	return found
}
