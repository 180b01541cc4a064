package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/internal/metrics"
)

func TestCollectorsOfTheProgramAreServed(t *testing.T) {
	backups := prometheus.NewCounter(prometheus.CounterOpts{Name: "myoperator_backups_total", Help: "Backups made."})
	backups.Add(3)
	m := create(t, metrics.Options{Operator: "example", Collectors: []prometheus.Collector{backups}})
	if got := scrape(t, m); !strings.Contains(got, "\nmyoperator_backups_total 3\n") || !strings.Contains(got, "gopf_build_info{") {
		t.Errorf("got %s", got)
	}
}

func TestInvalidCollectorsAreNamedInErrors(t *testing.T) {
	backups := prometheus.NewCounter(prometheus.CounterOpts{Name: "myoperator_backups_total", Help: "Backups made."})
	for name, c := range map[string]struct {
		collectors []prometheus.Collector
		want       string
	}{
		"twice":    {[]prometheus.Collector{backups, backups}, "collector 1 in the settings (*prometheus.counter)"},
		"nil":      {[]prometheus.Collector{nil}, "collector 0 in the settings is nil"},
		"our name": {[]prometheus.Collector{prometheus.NewCounter(prometheus.CounterOpts{Name: "gopf_posted_events_total", Help: "x"})}, "must not start with gopf_"},
	} {
		if _, err := metrics.New(metrics.Options{Collectors: c.collectors}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
