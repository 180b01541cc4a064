package report

import "testing"

func TestMedianMergesTheRoundsOfEachMeasurement(t *testing.T) {
	r := &Results{}
	add := func(program string, cpu, peak float64) {
		r.Add(Row{ID: "B1", Program: program, Objects: 10, Values: []Value{{"CPU per object", cpu, "ms"}, {"peak", peak, "MB"}}})
	}
	for _, round := range [][2]float64{{1, 30}, {9, 10}, {2, 20}} {
		add(status, round[0], round[1])
		add(typed, 10*round[0], round[1])
	}
	add(bare, 4, 1)
	add(bare, 6, 2)
	r.Median(3)
	if len(r.Rows) != 3 || r.Rounds != 3 {
		t.Fatalf("%d rows of %d rounds", len(r.Rows), r.Rounds)
	}
	for _, want := range []struct {
		program   string
		cpu, peak float64
	}{{status, 2, 20}, {typed, 20, 20}, {bare, 5, 1.5}} {
		cpu, _ := r.Find("B1", want.program, 10, "", "CPU per object")
		peak, _ := r.Find("B1", want.program, 10, "", "peak")
		if cpu != want.cpu || peak != want.peak {
			t.Errorf("%s: %v and %v, want %v and %v", want.program, cpu, peak, want.cpu, want.peak)
		}
	}
}
