package top

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// histogram returns a sample with calls of up to 0.1 s, of up to 1 s, and slower ones.
func histogram(t *testing.T, fast, slow, slower int) *Sample {
	return sample(t, fmt.Sprintf(`gopf_leading 1
gopf_queue_depth{resource="pods"} 7
gopf_queue_oldest_age_seconds{resource="pods"} 3
gopf_queue_oldest_age_seconds{resource="jobs"} 5
gopf_stream_events_total{resource="pods",type="added"} %[3]d
gopf_handler_runs_total{handler="a",resource="pods",outcome="retried"} %[1]d
gopf_handler_duration_seconds_bucket{handler="a",resource="pods",le="0.1"} %[1]d
gopf_handler_duration_seconds_bucket{handler="a",resource="pods",le="1"} %[2]d
gopf_handler_duration_seconds_bucket{handler="a",resource="pods",le="+Inf"} %[3]d
gopf_handler_duration_seconds_count{handler="a",resource="pods"} %[3]d
gopf_handler_duration_seconds_sum{handler="a",resource="pods"} 5
gopf_api_requests_total{verb="patch",code="409"} %[3]d
`, fast, fast+slow, fast+slow+slower))
}

func TestPointsHaveRatesAndQuantilesOfTheTimeBetweenTwoSamples(t *testing.T) {
	before, now := histogram(t, 1000, 0, 0), histogram(t, 1000, 100, 0)
	p := PointOf(time.Unix(5, 0), now, before, 10*time.Second)
	if p.Calls != 10 || p.Events != 10 || p.Requests != 10 || p.Failures != 0 || p.Queued != 7 || p.Oldest != 5 {
		t.Errorf("%+v", p)
	}
	if p.Median == nil || math.Abs(*p.Median-0.55) > 1e-9 || math.Abs(*p.P95-0.955) > 1e-9 {
		t.Errorf("median %v, p95 %v", *p.Median, *p.P95)
	}
	if p := PointOf(time.Unix(5, 0), now, now, time.Second); p.Median != nil || p.P95 != nil {
		t.Errorf("without calls: %v", *p.Median)
	}
	if p := PointOf(time.Unix(5, 0), histogram(t, 0, 0, 4), nil, 0); *p.P95 != 1 || p.Calls != 0 {
		t.Errorf("slower than all buckets: %v", *p.P95)
	}
}

func TestActivitiesHaveEachResourceHandlerAndVerb(t *testing.T) {
	a := ActivityOf(histogram(t, 10, 10, 0), nil, 0)
	if a.State != "working" || len(a.Resources) != 1 || a.Resources[0].Queued != 7 || a.Resources[0].Events != nil {
		t.Errorf("%+v", a)
	}
	if h := a.Handlers; len(h) != 1 || h[0].ID != "a" || h[0].Calls != 20 || h[0].Failed != 10 || *h[0].Median != 0.1 || h[0].Rate != nil {
		t.Errorf("%+v", a.Handlers)
	}
	if r := a.Requests; len(r) != 1 || r[0].Verb != "patch" || r[0].Conflicts != 20 {
		t.Errorf("%+v", a.Requests)
	}
}
