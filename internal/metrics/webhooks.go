package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Review is the outcome of an admission review.
type Review int

// Outcomes of reviews.
const (
	Allowed      Review = iota
	Denied              // by the handler, on purpose
	ReviewFailed        // the handler failed in any way
	reviews             // number of outcomes
)

var reviewNames = [reviews]string{"allowed", "denied", "failed"}

// Webhook counts the reviews of one handler.
type Webhook struct {
	reviews [reviews]prometheus.Counter
	times   prometheus.Observer
}

// Webhook returns the counters of a declared admission handler.
func (m *Metrics) Webhook(id string) *Webhook {
	if m == nil {
		return nil
	}
	w := &Webhook{times: m.counted.reviewTimes.WithLabelValues(id)}
	for r := range w.reviews {
		w.reviews[r] = m.counted.reviews.WithLabelValues(id, reviewNames[r])
	}
	return w
}

// Reviewed counts a review and its duration.
func (w *Webhook) Reviewed(r Review, took time.Duration) {
	if w != nil && r >= 0 && r < reviews {
		w.reviews[r].Inc()
		w.times.Observe(took.Seconds())
	}
}
