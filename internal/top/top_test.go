package top

import (
	"os"
	"strings"
	"testing"
	"time"
)

func sample(t *testing.T, text string) *Sample {
	t.Helper()
	s, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rows returns the printed lines with single spaces.
func rows(t *testing.T, now, before *Sample, elapsed time.Duration) string {
	t.Helper()
	var out strings.Builder
	if err := Write(&out, now, before, elapsed); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestTheMetricsOfAnOperatorAreShown reads the metrics that package metrics exposes.
func TestTheMetricsOfAnOperatorAreShown(t *testing.T) {
	text, err := os.ReadFile("../metrics/testdata/exposition.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := rows(t, sample(t, string(text)), nil, 0)
	for _, want := range []string{
		"operator paused; 21 calls are running; requests: 22 in flight, 23 waiting, limit 32",
		"pods.v1 3 3 - 5 7.5s 8 11 9 10",
		"create_fn pods.v1 1s - 6 3",
		"create_fn/* pods.v1 20ms - 1 0",
		"patch - 2 1 0 0",
		"watch - 1 0 0 1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Index(got, "create_fn pods.v1") > strings.Index(got, "create_fn/* pods.v1") {
		t.Error("the slowest handler is not the first")
	}
}

func TestRatesComeFromTwoSamples(t *testing.T) {
	metrics := func(calls, requests string) *Sample {
		return sample(t, `gopf_leading{operator="x"} 1
gopf_handler_duration_seconds_count{handler="a",resource="pods"} `+calls+`
gopf_handler_duration_seconds_sum{handler="a",resource="pods"} 5
gopf_api_requests_total{verb="patch",code="200"} `+requests+`
`)
	}
	got := rows(t, metrics("30", "110"), metrics("10", "100"), 10*time.Second)
	for _, want := range []string{"operator working", "a pods 166.7ms 2.0 30 0", "patch 1.0 110"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := rows(t, metrics("5", "5"), metrics("10", "100"), 10*time.Second); !strings.Contains(got, "a pods 1s - 5") {
		t.Errorf("after a restart of the operator:\n%s", got)
	}
}

func TestLabelsAreUnquoted(t *testing.T) {
	s := sample(t, `# HELP gopf_x y
other_metric 5
gopf_x{a="1,2}",b="say \"hi\"\n"} 7 1700000000
gopf_y 1e3
`)
	if got := s.sum("gopf_x", map[string]string{"a": "1,2}", "b": "say \"hi\"\n"}); got != 7 {
		t.Errorf("got %v", got)
	}
	if got := s.sum("gopf_y", nil); got != 1000 {
		t.Errorf("got %v", got)
	}
}

func TestOtherTextsAreNoMetrics(t *testing.T) {
	for _, text := range []string{"", "<html>", "up 1\n", "gopf_x", "gopf_x{a} 1", `gopf_x{a="b} 1`, `gopf_x{a="b"} many`} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
