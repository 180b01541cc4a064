package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gopf.dev/gopf/internal/top"
)

const (
	interval  = 5 * time.Second // between two samples of the metrics
	maxPoints = 240             // in a diagram: 20 minutes
	// streamTime is the longest time of one stream. The browser then requests another one, for
	// which its permission is checked again.
	streamTime = 2 * time.Minute
	reconnect  = 500 * time.Millisecond // the browser waits so long after the end of a stream
)

// samples are the latest activities.
type samples struct {
	last     *top.Sample
	at       time.Time
	activity top.Activity
	points   []top.Point
}

// Run samples the metrics until ctx ends.
func (p *Page) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		p.Sample(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sample reads the metrics at the given time, which is now except in tests and demonstrations.
// The request for the metrics has it in the header Date.
func (p *Page) Sample(now time.Time) {
	if err := p.sample(now); err != nil {
		p.log.Debug("The metrics for the page cannot be read.", "error", err)
	}
}

// sample adds a point.
func (p *Page) sample(now time.Time) error {
	var out memory
	request, err := http.NewRequest(http.MethodGet, "/metrics", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Date", now.Format(time.RFC3339Nano))
	p.metrics.ServeHTTP(&out, request)
	current, err := top.Parse(&out.body)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.samples
	elapsed := now.Sub(s.at)
	s.activity = top.ActivityOf(current, s.last, elapsed)
	if s.last != nil {
		if len(s.points) == maxPoints {
			s.points = append(s.points[:0], s.points[1:]...)
		}
		s.points = append(s.points, top.PointOf(now, current, s.last, elapsed))
	}
	s.last, s.at = current, now
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// memory is a response in memory.
type memory struct {
	header http.Header
	body   bytes.Buffer
}

func (m *memory) Header() http.Header {
	if m.header == nil {
		m.header = http.Header{}
	}
	return m.header
}
func (m *memory) WriteHeader(int)             {}
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }

// Top is the activity of the operator.
type Top struct {
	About    About        `json:"about"`
	Activity top.Activity `json:"activity"`
	Points   []top.Point  `json:"points"`
}

// top returns the activity, with all points of the diagrams or with only the last one.
func (p *Page) top(s Source, all bool) Top {
	p.mu.Lock()
	defer p.mu.Unlock()
	points := p.samples.points
	if n := len(points); !all && n > 0 {
		points = points[n-1:]
	}
	return Top{About: s.About(), Activity: p.samples.activity, Points: append([]top.Point{}, points...)}
}

// stream sends the activity after each sample, as server-sent events, for at most streamTime.
func (p *Page) stream(w http.ResponseWriter, req *http.Request) {
	source := p.source.Load()
	if source == nil {
		fail(w, http.StatusServiceUnavailable, "the operator is starting")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // it would end the request
	if _, err := fmt.Fprintf(w, "retry: %d\n\n", reconnect.Milliseconds()); err != nil {
		return
	}
	end := time.NewTimer(streamTime)
	defer end.Stop()
	for all := true; ; all = false {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		data, err := json.Marshal(p.top(*source, all))
		if err != nil {
			return
		}
		_ = control.SetWriteDeadline(time.Now().Add(2 * interval)) // the usual one is for the whole response
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil || control.Flush() != nil {
			return // the client is gone
		}
		select {
		case <-req.Context().Done():
			return
		case <-end.C:
			return
		case <-changed:
		}
	}
}
