package report

import (
	"fmt"
	"html"
	"strings"
)

// panel is one of the four charts. Bars of a panel share a scale.
type panel struct {
	title, id, value, better string
	bars                     []bar
}

type bar struct {
	program string
	is      float64
	apart   bool // measured elsewhere
}

// style makes the chart readable on light and on dark pages.
const style = `<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .note { font-size: 12px; fill: #59636e }
  .own { fill: #0969da } .other { fill: #9aa4af } .apart { fill: none; stroke: #9aa4af; stroke-dasharray: 4 3 }
  .page { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .note { fill: #9198a1 }
    .own { fill: #4493f8 } .other { fill: #656c76 } .apart { stroke: #8b949e }
    .page { fill: #0d1117 }
  }
</style>
`

// Chart returns the four comparisons that matter most as an SVG. It is empty if the run
// has none of them.
func (r *Results) Chart() string {
	const width, height, column, row, line = 900, 40, 450, 34, 26
	var b strings.Builder
	y, deepest := 0, 0
	for i, p := range r.panels() {
		x := i % 2 * column
		if i%2 == 0 {
			y, deepest = y+deepest, 0
		}
		deepest = max(deepest, height+row+line*len(p.bars))
		draw(&b, p, x, y)
	}
	if b.Len() == 0 {
		return ""
	}
	notes := fmt.Sprintf("%d cores shared with the API server; %s, Kubernetes %s, controller-runtime %s; %s.", r.Cores, r.Go, r.Kubernetes, r.Runtime, r.Date)
	if _, measured := r.largest("B1", kopf); !measured {
		notes += "\nDashed: Kopf 1.44.6, measured apart with 3,000 objects."
	}
	for i, text := range strings.Split(notes, "\n") {
		fmt.Fprintf(&b, "<text class=\"note\" x=\"16\" y=\"%d\">%s</text>\n", y+deepest+26+18*i, html.EscapeString(text))
	}
	total := y + deepest + 56
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n%s<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n", width, total, width, total, style, b.String())
}

// draw draws a panel at a position.
func draw(b *strings.Builder, p panel, x, y int) {
	const left, length, thick, line = 182, 190, 16, 26
	most := 0.0
	for _, e := range p.bars {
		most = max(most, e.is)
	}
	fmt.Fprintf(b, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text><text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n",
		x+16, y+30, html.EscapeString(p.title), x+16, y+48, p.better)
	y += 60
	for _, e := range p.bars {
		class := "other"
		switch {
		case e.apart:
			class = "apart"
		case strings.HasPrefix(e.program, gopf):
			class = "own"
		}
		long := max(2, e.is/most*length)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><rect class=\"%s\" rx=\"2\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/><text x=\"%.1f\" y=\"%d\">%s</text>\n",
			x+left-8, y+13, html.EscapeString(label(e.program)), class, x+left, y, long, thick, float64(x+left)+long+6, y+13, number(e.is))
		y += line
	}
}

// label returns a short name of a program.
func label(program string) string {
	switch program {
	case status:
		return "Gopf, state in status"
	case typed:
		return "controller-runtime"
	case untyped:
		return "c-r, unstructured"
	}
	return program
}

// panels returns the charts that have bars of Gopf and of another program.
func (r *Results) panels() []panel {
	var all []panel
	for _, p := range []panel{
		{title: "New objects handled per second", id: "B1", value: "rate", better: "longer is better"},
		{title: "CPU per new object, ms", id: "B1", value: "CPU per object", better: "shorter is better"},
		{title: "Memory, MB", id: "B3", value: "settled", better: "shorter is better"},
		{title: "Cold start, s", id: "B3", value: "ready", better: "shorter is better"},
	} {
		n, found := r.largest(p.id, gopf, typed)
		if !found {
			continue
		}
		p.title += fmt.Sprintf(" (%s objects)", thousands(n))
		for _, program := range []string{status, gopf, typed, untyped, kopf} {
			if is, found := r.Find(p.id, program, n, "", p.value); found {
				p.bars = append(p.bars, bar{program: program, is: is})
			} else if is, found := Apart[p.value]; found && program == kopf && p.id == "B1" {
				p.bars = append(p.bars, bar{kopf, is, true})
			}
		}
		all = append(all, p)
	}
	return all
}

// Apart has results of Kopf 1.44.6 for 3,000 new objects on a machine of the same size,
// with two writes per object: the middle of two rounds.
var Apart = map[string]float64{"rate": 114, "CPU per object": 4.95}

// largest returns the largest number of objects for which all programs have results.
func (r *Results) largest(id string, programs ...string) (n int, found bool) {
	for _, candidate := range r.numbers() {
		all := true
		for _, program := range programs {
			all = all && r.has(id, program, candidate)
		}
		if all && candidate >= n {
			n, found = candidate, true
		}
	}
	return n, found
}

func (r *Results) has(id, program string, objects int) bool {
	for _, row := range r.Rows {
		if row.ID == id && row.Program == program && row.Objects == objects && row.Note == "" {
			return true
		}
	}
	return false
}

func thousands(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}
