package metrics_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/internal/metrics"
)

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// served returns the types and labels of all metrics, in the format of the page.
func served(t *testing.T) map[string]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	use(create(t, metrics.Options{Registerer: registry}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range families {
		labels := []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		all[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
	}
	return all
}

func TestTheDocumentationHasAllMetrics(t *testing.T) {
	documented := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `(gopf_[a-z_]+)` \\| (\\w+) \\| ([^|]*)\\| [^|]{10,} \\|$")
	for _, m := range row.FindAllStringSubmatch(readPage(t), -1) {
		labels := regexp.MustCompile(`\w+`).FindAllString(m[3], -1)
		slices.Sort(labels)
		documented[m[1]] = m[2] + " " + strings.Join(labels, ",")
	}
	if diff := cmp.Diff(served(t), documented); diff != "" {
		t.Errorf("docs/metrics.md: %s", diff)
	}
}

func TestTheDocumentationUsesOnlyMetricsThatExist(t *testing.T) {
	all := served(t)
	part := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range regexp.MustCompile(`\bgopf_[a-z_]+`).FindAllString(readPage(t), -1) {
		if all[name] == "" && !strings.HasPrefix(all[part.ReplaceAllString(name, "")], "histogram") {
			t.Errorf("docs/metrics.md has %s; there are %v", name, slices.Sorted(maps.Keys(all)))
		}
	}
}

func TestTheDocumentationHasAllValuesOfLabels(t *testing.T) {
	page := readPage(t)
	text := scrape(t, func() *metrics.Metrics {
		m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
		use(m)
		return m
	}())
	for _, m := range regexp.MustCompile(`(?:type|state|outcome)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("docs/metrics.md does not mention %s", m[0])
		}
	}
}
