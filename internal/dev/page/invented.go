package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/page"
)

// invented is an operator with invented objects. It implements [page.Source].
type invented struct{ names []controller.Known } // sorted

func newInvented() *invented {
	o := &invented{}
	for i := range objects {
		o.names = append(o.names, controller.Known{
			Namespace: fmt.Sprintf("team-%02d", i/(objects/40)), Name: fmt.Sprintf("db-%06d", i),
			Retrying: i%997 == 3, Running: i%4999 == 7, Paused: i%1999 == 11,
		})
	}
	return o
}

func (*invented) About() page.About {
	return page.About{Name: "databases.example.com", Version: "v0.1.0", Resources: []string{"databases.example.com", "secrets", "users.example.com"}}
}

func (o *invented) Objects(resource string, b controller.Browsing) (found []controller.Known, total int, err error) {
	if !slices.Contains(o.About().Resources, resource) {
		return nil, 0, page.ErrUnknown
	}
	for _, k := range o.names {
		name := k.Namespace + "/" + k.Name
		in := map[string]bool{"": true, "retrying": k.Retrying, "running": k.Running, "paused": k.Paused}[b.State]
		if !in || !strings.Contains(name, b.Search) {
			continue
		}
		total++
		if name > b.After && len(found) < b.Limit {
			found = append(found, k)
		}
	}
	return found, total, nil
}

func (o *invented) Object(_ context.Context, resource, namespace, name string) (*page.Object, error) {
	if resource == "secrets" {
		return &page.Object{Report: &explain.Report{
			Summary: "Secret " + namespace + "/" + name + ": update: calls rotate now",
			Object:  explain.Object{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name, Handled: true},
			Changes: []explain.Change{{Op: "change", Path: "data.password", Old: "hunter1", New: "hunter2"}},
		}, Timeline: []page.Step{}, Children: []page.Child{}}, nil
	}
	now := time.Now()
	due := now.Add(38 * time.Second)
	r := &explain.Report{
		Version: explain.Version, Next: "wait", Reason: "update", Summary: "Database " + namespace + "/" + name + ": update: waits for backup",
		Object: explain.Object{APIVersion: "example.com/v1", Kind: "Database", Namespace: namespace, Name: name, UID: "5f1c-" + name, ResourceVersion: "81234", Handled: true},
		Changes: []explain.Change{{Op: "change", Path: "spec.size", Old: 10, New: 20},
			{Op: "add", Path: "metadata.labels.tier", New: "<img src=x onerror=alert(1)>"}},
		Handlers: []explain.Handler{
			{ID: "provision", Family: "change", Phase: "succeeded", Attempts: 1, Finished: &now},
			{ID: "backup", Family: "change", Phase: "delayed", Attempts: 4, Due: &due, Message: "dial tcp 10.0.0.7:5432: connection refused"},
			{ID: "audit", Family: "change", Phase: "unmatched", Why: `label tier is "dev", the handler requires "prod"`},
			{ID: "check", Family: "timer", Phase: "due"},
		},
		Deletion: explain.Deletion{Finalizer: "example.com/f", Guarded: true, Requires: []string{"drop"}, Others: []string{"foregroundDeletion"}},
	}
	return &page.Object{Report: r, Timeline: timeline(now), Children: []page.Child{
		{Kind: "Service", Namespace: namespace, Name: name, State: "ready"},
		{Kind: "StatefulSet", Namespace: namespace, Name: name, State: "in progress", Message: "1 of 3 replicas are ready"},
		{Kind: "User", Namespace: namespace, Name: name + "-admin", Resource: "users.example.com", State: "ready",
			Children: []page.Child{{Kind: "Secret", Namespace: namespace, Name: name + "-admin-password", State: "ready"}}},
	}}, nil
}

// timeline returns 4 failing attempts.
func timeline(now time.Time) (steps []page.Step) {
	for i := range 4 {
		at := now.Add(time.Duration(i-4) * time.Minute)
		steps = append(steps,
			page.Step{At: at, Took: 3.1, Step: "turn", Text: "alarm"},
			page.Step{At: at.Add(time.Second / 10), Took: 2, Step: "call", Handler: "backup", Outcome: "retried", Text: "dial tcp 10.0.0.7:5432: connection refused"},
			page.Step{At: at.Add(2 * time.Second), Took: 0.02, Step: "write", Outcome: "succeeded"},
			page.Step{At: at.Add(3 * time.Second), Step: "event", Text: "Warning: the backup fails"})
	}
	return steps
}

// began is the start of the invented operator, half an hour ago.
var began = time.Now().Add(-30 * time.Minute)

// metrics serves invented metrics.
func metrics(w http.ResponseWriter, req *http.Request) {
	t := time.Since(began).Seconds()
	if at, err := time.Parse(time.RFC3339Nano, req.Header.Get("Date")); err == nil {
		t = at.Sub(began).Seconds()
	}
	wave := 1 + math.Sin(t/90)*0.6 + math.Sin(t/17)*0.2
	total := 40*t - 40*0.6*90*math.Cos(t/90)
	fmt.Fprintf(w, `gopf_leading 1
gopf_handlers_running %.0[1]f
gopf_api_requests_in_flight 3
gopf_api_requests_limit 32
gopf_queue_depth{resource="databases.example.com"} %.0[2]f
gopf_queue_depth{resource="users.example.com"} 0
gopf_queue_oldest_age_seconds{resource="databases.example.com"} %[1]f
gopf_retries_waiting{resource="databases.example.com"} 101
gopf_paused_objects{resource="databases.example.com"} 51
gopf_streams{resource="databases.example.com",state="watching"} 1
gopf_streams{resource="users.example.com",state="failing"} 1
gopf_stream_events_total{resource="databases.example.com",type="modified"} %[3]f
gopf_handler_runs_total{handler="backup",resource="databases.example.com",outcome="retried"} %[4]f
gopf_handler_duration_seconds_bucket{handler="backup",resource="databases.example.com",le="0.1"} %[4]f
gopf_handler_duration_seconds_bucket{handler="backup",resource="databases.example.com",le="1"} %[5]f
gopf_handler_duration_seconds_bucket{handler="backup",resource="databases.example.com",le="+Inf"} %[5]f
gopf_handler_duration_seconds_count{handler="backup",resource="databases.example.com"} %[5]f
gopf_handler_duration_seconds_sum{handler="backup",resource="databases.example.com"} %[5]f
gopf_api_requests_total{verb="patch",code="200"} %[3]f
gopf_api_requests_total{verb="patch",code="409"} 12
gopf_api_request_duration_seconds_bucket{verb="patch",le="0.025"} %[3]f
gopf_api_request_duration_seconds_bucket{verb="patch",le="+Inf"} %[3]f
`, wave*4, wave*120, total, total/10, total/4)
}
