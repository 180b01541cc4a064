package report

import (
	"fmt"
	"html"
	"strings"
)

// Chart returns the results as an SVG with bars: one group per measurement with several
// programs, each with its own scale.
func (r *Results) Chart() string {
	const width, bar, left, right = 860, 18, 300, 90
	var b strings.Builder
	y := 30
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "<text x=\"10\" y=\"%d\" font-weight=\"bold\">%s</text>\n", y, html.EscapeString(g.title))
		y += 8
		for _, e := range g.bars {
			length := 1.0
			if g.most > 0 {
				length = max(1, e.value/g.most*(width-left-right))
			}
			colour := "#9aa5b1"
			if strings.HasPrefix(e.name, "Gopf") {
				colour = "#2f6feb"
			}
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left-8, y+13, html.EscapeString(e.name))
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", left, y, length, bar-4, colour)
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", left+length+6, y+13, number(e.value))
			y += bar
		}
		y += 26
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n", width, y, b.String())
}

type group struct {
	title string
	most  float64
	bars  []entry
}

type entry struct {
	name  string
	value float64
}

// groups returns the values of rows with the same id, number and name, if there are several.
func (r *Results) groups() []*group {
	var found []*group
	byTitle := map[string]*group{}
	for _, row := range r.Rows {
		for _, v := range row.Values {
			title := fmt.Sprintf("%s %s, %d objects: %s, %s", row.ID, Titles[row.ID], row.Objects, v.Name, v.Unit)
			g := byTitle[title]
			if g == nil {
				g = &group{title: title}
				byTitle[title] = g
				found = append(found, g)
			}
			name := row.Program
			if row.Note != "" {
				name += " (" + row.Note + ")"
			}
			g.bars = append(g.bars, entry{name, v.Is})
			g.most = max(g.most, v.Is)
		}
	}
	var several []*group
	for _, g := range found {
		if len(g.bars) > 1 && g.most > 0 {
			several = append(several, g)
		}
	}
	return several
}
