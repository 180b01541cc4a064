package report

import (
	"math"
	"os"
	"strings"
	"testing"
)

// published are the results of 2026-11-17, from which README.md calculates.
var published = measured{empty: 23.79, full: 28.75, before: 28.99, peak: 38.23, seconds: 3.61, cpu: 48, objects: 20000}

func TestARelistOnPaperGrowsWithTheObjects(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > .5 {
			t.Errorf("%s: got %.2f, want %.2f", what, got, want)
		}
	}
	same := published.scale(20000)
	near("settled", same.settled, 28.75)
	near("peak", same.peak, 37.98)
	near("time", same.seconds, 3.61)
	many := published.scale(1_000_000)
	near("settled", many.settled, 271.64)
	near("peak", many.peak, 733.36)
	near("time", many.seconds, 180.7)
	near("CPU", many.cpu, 48)
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"272 MB", "733 MB", "181 s"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
}

func TestTheTableHasARelistOnPaperOnlyWithItsMeasurements(t *testing.T) {
	r := &Results{}
	mb := func(name string, is float64) Value { return Value{Name: name, Is: is, Unit: "MB"} }
	r.Add(Row{ID: "B9", Program: gopf, Objects: 1000, Values: []Value{mb("settled before", 22), mb("peak", 23), {Name: "time", Is: 1, Unit: "s"}, {Name: "CPU per object", Is: 40, Unit: "µs"}}})
	if strings.Contains(r.Table(), "On paper") {
		t.Error("a calculation without the memory of objects")
	}
	r.Add(Row{ID: "B4", Program: gopf, Note: "10 entries", Values: []Value{mb("settled", 20)}})
	r.Add(Row{ID: "B4", Program: gopf, Objects: 1000, Note: "10 entries", Values: []Value{mb("settled", 21)}})
	if text := r.Table(); !strings.Contains(text, "| Gopf | 1000000 | 1020 | 2020 | 1000 | 40 |") {
		t.Errorf("got %s", text)
	}
}
