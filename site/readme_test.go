package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gopf.dev/gopf/site/picture"
)

// TestREADMEHasTheMeasuredNumbers fails after a new run of the benchmarks: run make pictures,
// and change the numbers in the README.
func TestREADMEHasTheMeasuredNumbers(t *testing.T) {
	readme := readREADME(t)
	numbers, err := picture.Numbers("../bench/results/bench.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		for _, value := range []float64{n.Gopf, n.Others} {
			if !strings.Contains(readme, n.Text(value)) {
				t.Errorf("the README does not contain %s, %s", n.Label, n.Text(value))
			}
		}
	}
	chart, err := picture.Chart(numbers)
	if err != nil {
		t.Fatal(err)
	}
	if drawn, err := os.ReadFile("../docs/pictures/numbers.svg"); err != nil || string(drawn) != chart.SVG("") {
		t.Errorf("the chart is out of date; run make pictures: %v", err)
	}
}

func TestREADMEFitsOnTwoScreens(t *testing.T) {
	readme := readREADME(t)
	if lines := strings.Count(readme, "\n"); lines > 100 {
		t.Errorf("the README has %d lines", lines)
	}
	operator := regexp.MustCompile("(?s)```go\npackage main\n.*?\n\\)\n(.*?)```").FindStringSubmatch(readme)
	if operator == nil {
		t.Fatal("the README has no operator")
	}
	code := 0
	for line := range strings.Lines(operator[1]) {
		if strings.TrimSpace(line) != "" {
			code++
		}
	}
	if code > 12 {
		t.Errorf("the operator has %d lines without its imports; at most 12 are allowed", code)
	}
}

func readREADME(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
