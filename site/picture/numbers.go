package picture

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Number is a measurement of Gopf next to the same one of controller-runtime.
type Number struct {
	Label, Unit  string
	Gopf, Others float64
}

// chosen are the measurements of the README, by their names in the results of the
// benchmarks.
var chosen = []struct{ id, name, label string }{
	{"B3", "settled", "memory with 20,000 handled objects"},
	{"B9", "peak", "peak while all are listed again"},
	{"B3", "ready", "start until ready"},
	{"B3", "CPU per object", "CPU of a start, per object"},
}

const (
	measuredObjects = 20000
	own             = "Gopf, state in the status" // as in new projects
	other           = "controller-runtime, typed"
)

// Numbers reads the results of the benchmarks: bench/results/bench.json.
func Numbers(path string) ([]Number, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var results struct {
		Rows []struct {
			ID, Program, Note string
			Objects           int
			Values            []struct {
				Name, Unit string
				Is         float64
			}
		}
	}
	if err := json.Unmarshal(raw, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var list []Number
	for _, c := range chosen {
		n := Number{Label: c.label}
		for _, row := range results.Rows {
			if row.ID != c.id || row.Objects != measuredObjects || row.Note != "" {
				continue
			}
			for _, v := range row.Values {
				switch {
				case v.Name != c.name:
				case row.Program == own:
					n.Gopf, n.Unit = v.Is, v.Unit
				case row.Program == other:
					n.Others = v.Is
				}
			}
		}
		if n.Gopf == 0 || n.Others == 0 {
			return nil, fmt.Errorf("%s has no %s of %s with %d objects for both programs", path, c.name, c.id, measuredObjects)
		}
		list = append(list, n)
	}
	return list, nil
}

// Text returns a value with three digits.
func (n Number) Text(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f %s", value, n.Unit)
	case value >= 10:
		return fmt.Sprintf("%.1f %s", value, n.Unit)
	}
	return fmt.Sprintf("%.2f %s", value, n.Unit)
}

// Chart draws the numbers as bars.
func Chart(numbers []Number) (*Picture, error) {
	const left, widest, step = 270, 380, 56
	var b strings.Builder
	fmt.Fprintf(&b, "size 780 %d\ntitle Gopf and controller-runtime: shorter bars are better\n", len(numbers)*step+34)
	for i, n := range numbers {
		y := 12 + i*step
		fmt.Fprintf(&b, "text left 12 %d | %s\n", y+24, n.Label)
		for j, value := range []float64{n.Gopf, n.Others} {
			kind := []string{"good", "plain"}[j]
			width := max(3, int(widest*value/max(n.Gopf, n.Others)))
			fmt.Fprintf(&b, "bar %s %d %d %d 18\ntext small %d %d | %s\n", kind, left, y+j*21, width, left+width+6, y+j*21+13, n.Text(value))
		}
	}
	y := 16 + len(numbers)*step
	fmt.Fprintf(&b, "bar good %d %d 14 12\ntext small %d %d | Gopf\nbar plain %d %d 14 12\ntext small %d %d | %s\n", left, y-8, left+20, y+3, left+80, y-8, left+100, y+3, other)
	return Parse(strings.NewReader(b.String()))
}
