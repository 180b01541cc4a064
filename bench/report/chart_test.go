package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func row(id, program string, values ...Value) Row {
	return Row{ID: id, Program: program, Objects: 2000, Values: values}
}

func TestTheChartComparesPrograms(t *testing.T) {
	r := &Results{Cores: 2}
	if r.Chart() != "" {
		t.Error("a chart without measurements")
	}
	rate := func(is float64) Value { return Value{Name: "rate", Is: is, Unit: "objects/s"} }
	r.Add(row("B1", gopf, rate(100)))
	if r.Chart() != "" {
		t.Error("a chart without another program")
	}
	r.Add(row("B1", typed, rate(200)))
	r.Add(row("B1", status, rate(400)))
	text := r.Chart()
	for _, want := range []string{"New objects handled per second (2,000 objects)", ">400<", ">200<", ">100<", "prefers-color-scheme: dark", "measured apart"} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	if strings.Contains(text, "Cold start") {
		t.Error("the chart has a panel without measurements")
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not valid XML: %v", err)
		}
	}
	r.Add(row("B1", kopf, rate(50)))
	if text := r.Chart(); strings.Contains(text, "measured apart") || !strings.Contains(text, ">50<") {
		t.Error("the chart ignores the measurement of Kopf")
	}
}

func TestBudgetsWithStateInTheStatus(t *testing.T) {
	r := &Results{}
	cpu := func(is float64) Value { return Value{Name: "CPU per object", Is: is} }
	writes := func(is float64) Value { return Value{Name: "writes per object", Is: is} }
	rate := func(is float64) Value { return Value{Name: "rate", Is: is} }
	r.Add(row("B1", status, cpu(0.6), writes(1), rate(300)))
	r.Add(row("B1", typed, cpu(1), rate(310)))
	r.Add(row("B2", status, cpu(0.8), writes(2)))
	r.Add(row("B2", typed, cpu(1)))
	r.Judge()
	met := map[string]bool{}
	for _, c := range r.Checks {
		met[c.Name] = c.Met
	}
	for name, want := range map[string]bool{
		"B1, state in the status, 2000 objects: CPU per object, ms, against " + typed: true,
		"B1, state in the status, 2000 objects: objects/s against " + typed:           true,
		"B1, state in the status, 2000 objects: writes per object":                    true,
		"B2, state in the status, 2000 objects: CPU per object, ms, against " + typed: false,
		"B2, state in the status, 2000 objects: writes per object":                    false,
	} {
		if got, found := met[name]; !found || got != want {
			t.Errorf("%s: met %t (judged: %t), want %t", name, got, found, want)
		}
	}
}
