package life_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/storage"
)

// scrape are the values of all series, by their names with labels.
func scrape(t *testing.T, address string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(waitCode(t, "http://"+address+"/metrics", 200)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		values[line[:at]] = value
	}
	return values
}

// storagesOf are those of an operator that shares its objects with others.
func storagesOf(name string) (storage.Progress, storage.Base) {
	return storage.NewAnnotationProgress(name + ".gopf.dev"), storage.NewAnnotationBase(name + ".gopf.dev")
}

func TestMetricsTellWhatIsGoingOn(t *testing.T) {
	t.Parallel()
	s, address := newSpace(t), kit.FreeAddress(t)
	op := newOperator()
	op.Settings.Metrics.Address = address
	x := gopf.For[*Example](op, examples)
	x.OnCreate("flaky", func(_ context.Context, c *gopf.Change[*Example]) error {
		if c.Retry == 0 {
			return gopf.RetryAfter(100*time.Millisecond, errors.New("not yet"))
		}
		return nil
	})
	x.OnCreate("broken", func(context.Context, *gopf.Change[*Example]) error { return gopf.Permanent(errors.New("never")) })
	x.OnCreate("parent", func(_ context.Context, c *gopf.Change[*Example]) error {
		for _, item := range c.Object.Spec.Items { // ids from data
			c.Sub(item, func(_ context.Context, c *gopf.Change[*Example]) error {
				c.Event(gopf.Normal, "Made", "a part is made")
				return nil
			})
		}
		return nil
	})
	x.OnUpdate("waiting", func(context.Context, *gopf.Change[*Example]) error { return gopf.Wait(time.Hour, "no hurry") })
	x.Daemon("daemon", func(ctx context.Context, _ *gopf.Daemon[*Example]) error { <-ctx.Done(); return nil }, gopf.Optional())
	x.Timer("timer", time.Hour, func(context.Context, *gopf.Tick[*Example]) error { return nil }, gopf.Optional())
	gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]bool, error) {
		return map[string]bool{s.Object.Name: true}, nil
	})
	o := s.start(op).serving()
	const objects, items = 3, 4
	for n := range objects {
		var parts []string
		for i := range items {
			parts = append(parts, fmt.Sprintf("part-%d-%d", n, i))
		}
		s.Create(examples, fmt.Sprint("x", n), fields{"spec": fields{"field": "a", "items": parts}})
	}
	for n := range objects {
		s.waitHandled(fmt.Sprint("x", n), "a")
	}
	s.Patch(examples, "x0", spec("b"))
	s.Remove(examples, "x2")
	kit.Await(t, "the daemon of x2 stops", func() bool {
		return scrape(t, address)[`gopf_daemons_running{resource="examples.life.gopf.dev"}`] == objects-1
	})
	kit.Await(t, "x0 waits", func() bool {
		return scrape(t, address)[`gopf_retries_waiting{resource="examples.life.gopf.dev"}`] == 1
	})
	handler := func(id, outcome string) string {
		return fmt.Sprintf(`gopf_handler_runs_total{handler=%q,outcome=%q,resource="examples.life.gopf.dev"}`, id, outcome)
	}
	of := func(name string, labels ...string) string {
		labels = append(labels, `resource="examples.life.gopf.dev"`)
		slices.Sort(labels)
		return name + "{" + strings.Join(labels, ",") + "}"
	}
	var got map[string]float64
	final := map[string]float64{
		handler("flaky", "retried"):      objects,
		handler("flaky", "succeeded"):    objects,
		handler("broken", "failed"):      objects,
		handler("parent", "succeeded"):   objects,
		handler("parent/*", "succeeded"): objects * items,
		handler("waiting", "waiting"):    1,
		handler("timer", "succeeded"):    objects,
		handler("daemon", "failed"):      0,

		of("gopf_streams", `state="watching"`):           1,
		of("gopf_streams", `state="failing"`):            0,
		of("gopf_queue_depth"):                           0,
		of("gopf_queue_bytes"):                           0,
		of("gopf_timers_waiting"):                        objects - 1,
		of("gopf_stream_events_total", `type="deleted"`): 1,
		of("gopf_stream_relists_total"):                  0,
		`gopf_index_entries{index="names"}`:              objects - 1,
		"gopf_paused":                                    0,
		"gopf_leading":                                   1,
		"gopf_unserved_declarations":                     0,
		"gopf_dropped_events_total":                      0,
	}
	kit.Eventually(t, func() (err error) { // the last event may still be queued
		got = scrape(t, address)
		for series, want := range final {
			if value, there := got[series]; !there || value != want {
				err = errors.Join(err, fmt.Errorf("%s is %v, want %v", series, value, want))
			}
		}
		return err
	})
	for _, series := range []string{
		`gopf_api_requests_total{code="200",resource="examples.life.gopf.dev",verb="patch"}`,
		`gopf_api_requests_total{code="200",resource="examples.life.gopf.dev",verb="watch"}`,
		`gopf_api_request_duration_seconds_count{verb="patch"}`,
		of("gopf_handler_duration_seconds_count", `handler="flaky"`),
		"gopf_posted_events_total", "go_goroutines", "process_open_fds",
	} {
		if got[series] <= 0 {
			t.Errorf("%s is %v", series, got[series])
		}
	}
	if n := got[of("gopf_stream_events_total", `type="added"`)] + got[of("gopf_stream_events_total", `type="listed"`)]; n < objects || n > 2*objects {
		t.Errorf("%v objects were listed or added, want %v, and some twice: once for the index alone", n, objects)
	}
	for series := range got {
		if strings.Contains(series, "part-") || strings.Contains(series, s.Name) || strings.Contains(series, `"x0"`) {
			t.Errorf("a label is made of data: %s", series)
		}
	}
	o.Stop()
}

// TestMetricsOfAResourceThatIsGoneAreForgotten runs alone: it defines a resource.
func TestMetricsOfAResourceThatIsGoneAreForgotten(t *testing.T) {
	s, d, address := newSpace(t), &diary{}, kit.FreeAddress(t)
	s.Create(definitions, "passings.life.gopf.dev", fields{"spec": fields{
		"scope": "Namespaced", "group": "life.gopf.dev",
		"names": fields{"kind": "Passing", "plural": "passings", "singular": "passing"},
		"versions": []fields{{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
		}}}},
	}})
	t.Cleanup(func() { s.Remove(definitions, "passings.life.gopf.dev") })
	op := newOperator()
	op.Settings.Metrics.Address = address
	d.handles(op, "ours")
	gopf.For[*Example](op, passings).OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { d.Add("passing"); return nil })
	s.start(op).serving()
	kit.Await(t, "the resource is served", func() bool {
		_, err := s.Of(passings).List(t.Context(), listAll)
		return err == nil
	})
	s.Create(passings, "p", nil)
	d.WaitFor(t, "passing")
	const runs = `gopf_handler_runs_total{handler="create",outcome="succeeded",resource="passings.life.gopf.dev"}`
	kit.Await(t, "it is counted", func() bool { return scrape(t, address)[runs] == 1 })
	s.Remove(definitions, "passings.life.gopf.dev")
	kit.Await(t, "its series are forgotten", func() bool {
		got := scrape(t, address)
		for series := range got {
			if strings.Contains(series, "passings") && !strings.HasPrefix(series, "gopf_api_requests_total") {
				return false
			}
		}
		return got["gopf_unserved_declarations"] == 1
	})
}
