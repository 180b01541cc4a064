package picture

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

// colors are the fill and the stroke of each kind of shape, and the colors of text, for one
// theme.
type colors struct {
	paper, ink, faint, line string
	fill, edge              map[string]string
}

var light = colors{
	paper: "#ffffff", ink: "#1b1f24", faint: "#57606a", line: "#57606a",
	fill: map[string]string{"plain": "#f6f8fa", "user": "#fff3d6", "server": "#e3ecff", "work": "#e2f5e9", "good": "#c9efd6", "bad": "#ffe0de", "note": "#f3ebff", "area": "#fbfcfd"},
	edge: map[string]string{"plain": "#8c959f", "user": "#b07c00", "server": "#2f5fc4", "work": "#1a7f4b", "good": "#1a7f4b", "bad": "#c0362c", "note": "#7a4fc0", "area": "#d0d7de"},
}

var dark = colors{
	paper: "#12161c", ink: "#e8edf2", faint: "#a5b0bc", line: "#a5b0bc",
	fill: map[string]string{"plain": "#222831", "user": "#3a2e0e", "server": "#182a4d", "work": "#12331f", "good": "#174d2c", "bad": "#4a1b18", "note": "#2c2145", "area": "#161b22"},
	edge: map[string]string{"plain": "#7d8894", "user": "#d9a530", "server": "#7aa5ff", "work": "#4cc38a", "good": "#4cc38a", "bad": "#ff8a80", "note": "#b794f6", "area": "#3a444f"},
}

// rules returns the style rules of a theme, each behind the given prefix.
func (c colors) rules(prefix string) string {
	var b strings.Builder
	rule := func(class, format string, args ...any) {
		fmt.Fprintf(&b, "%s.pic .%s{%s}", prefix, class, fmt.Sprintf(format, args...))
	}
	rule("paper", "fill:%s", c.paper)
	rule("ink", "fill:%s", c.ink)
	rule("faint", "fill:%s", c.faint)
	rule("tip", "fill:%s", c.line)
	rule("wire", "stroke:%s;fill:none", c.line)
	for _, kind := range slices.Sorted(maps.Keys(c.fill)) {
		rule(kind, "fill:%s;stroke:%s", c.fill[kind], c.edge[kind])
	}
	return b.String()
}

// CSS returns the rules for pages with a choice of themes: they override the theme of the
// system, which the drawings follow otherwise.
func CSS() string {
	return light.rules(`html[data-theme="light"] `) + "\n" + dark.rules(`html[data-theme="dark"] `) + "\n"
}

const fonts = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

// SVG returns the drawing. It follows the light or dark theme of the system. With a fixed
// theme, "light" or "dark", it has only those colors.
func (p *Picture) SVG(fixed string) string {
	style := light.rules("") + "@media (prefers-color-scheme:dark){" + dark.rules("") + "}"
	switch fixed {
	case "light":
		style = light.rules("")
	case "dark":
		style = dark.rules("")
	}
	var b strings.Builder
	out := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	out(`<svg xmlns="http://www.w3.org/2000/svg" class="pic" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" style="%s;font-size:%dpx">`, p.Width, p.Height, fonts, fontSize)
	out(`<title>%s</title>`, html.EscapeString(p.Title))
	out(`<style>%s</style>`, style)
	out(`<rect class="paper" width="%d" height="%d"/>`, p.Width, p.Height)
	for _, a := range p.areas {
		out(`<rect class="area" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, a.x, a.y, a.w, a.h)
		for _, l := range a.lines {
			out(`<text class="faint" x="%d" y="%d">%s</text>`, a.x+10, a.y+19, html.EscapeString(l))
		}
	}
	for _, l := range p.lines {
		out(`<path class="wire" stroke-width="1" d="M%d %dL%d %d"/>`, l[0], l[1], l[2], l[3])
	}
	for _, s := range p.bars {
		out(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4"/>`, s.kind, s.x, s.y, s.w, s.h)
		for _, l := range s.lines {
			out(`<text class="ink" x="%d" y="%d">%s</text>`, s.x+8, s.y+s.h/2+5, html.EscapeString(l))
		}
	}
	for _, a := range p.arrows {
		out("%s", a.svg())
	}
	for _, s := range p.boxes {
		out(`<rect class="%s" stroke-width="1.5" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, s.kind, s.x, s.y, s.w, s.h)
		top := s.y + (s.h-len(s.lines)*lineHeight)/2 + 13
		for i, l := range s.lines {
			out(`<text class="ink" text-anchor="middle" x="%d" y="%d">%s</text>`, s.x+s.w/2, top+i*lineHeight, html.EscapeString(l))
		}
	}
	for _, a := range p.arrows {
		if a.label != "" { // over the wires, on paper
			w := widthOf(a.label, 12)
			out(`<rect class="paper" x="%d" y="%d" width="%d" height="15"/>`, a.at.x-w/2-2, a.at.y-11, w+4)
			out(`<text class="faint" font-size="12" text-anchor="middle" x="%d" y="%d">%s</text>`, a.at.x, a.at.y, html.EscapeString(a.label))
		}
	}
	for _, t := range p.texts {
		out("%s", t.svg())
	}
	out("</svg>")
	return b.String()
}

func (t text) svg() string {
	attributes := map[string]string{
		"left": `class="ink"`, "middle": `class="ink" text-anchor="middle"`, "small": `class="faint" font-size="12"`,
		"code": `class="ink" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12"`,
		"head": `class="ink" text-anchor="middle" font-weight="600"`,
	}[t.kind]
	return fmt.Sprintf(`<text %s x="%d" y="%d">%s</text>`, attributes, t.x, t.y, html.EscapeString(t.text))
}

// svg draws the wire and the tip. The last part of an arrow is horizontal, vertical or
// sloped; the tip follows it.
func (a arrow) svg() string {
	var path strings.Builder
	for i, p := range a.points {
		fmt.Fprintf(&path, "%c%d %d", "ML"[min(i, 1)], p.x, p.y)
	}
	dash := ""
	if a.dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	end, before := a.points[len(a.points)-1], a.points[len(a.points)-2]
	return fmt.Sprintf(`<path class="wire" stroke-width="1.5"%s d="%s"/><path class="tip" d="%s"/>`, dash, path.String(), tip(before, end))
}

// tip returns the path of a triangle at the end of a line.
func tip(from, to point) string {
	dx, dy := float64(to.x-from.x), float64(to.y-from.y)
	length := max(1, math.Hypot(dx, dy))
	dx, dy = dx/length, dy/length
	x, y := float64(to.x), float64(to.y)
	return fmt.Sprintf("M%.1f %.1fL%.1f %.1fL%.1f %.1fZ", x, y, x-9*dx-4*dy, y-9*dy+4*dx, x-9*dx+4*dy, y-9*dy-4*dx)
}
