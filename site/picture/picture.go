// Package picture draws the diagrams of the manual from text files.
//
// A file has one statement per line. Coordinates are pixels of the drawing:
//
//	size 760 300                          the size; must be the first statement
//	title The states of a handler         the text for screen readers
//	area X Y W H | label                  a frame behind boxes, with a label at the top left
//	box NAME KIND X Y W H | line | line   a box with lines of text
//	bar KIND X Y W H | label              a filled bar, for time lines
//	line X1 Y1 X2 Y2                      a thin line
//	text KIND X Y | line                  text; KIND is left, middle, small, code or head
//	arrow A.side B.side [X,Y ...] | label an arrow between sides (l, r, t, b) of boxes, through points
//	arrow X1,Y1 X2,Y2 | label             an arrow between points
//
// KIND of boxes and bars is plain, user, server, work, good, bad or note. "dashed" in place
// of "arrow" draws a dashed one. A "@X,Y" after the label of an arrow moves the label.
package picture

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Picture is a drawing.
type Picture struct {
	Width, Height int
	Title         string

	areas, boxes, bars []shape
	lines              [][4]int
	texts              []text
	arrows             []arrow
}

type shape struct {
	name, kind string
	x, y, w, h int
	lines      []string
}

type text struct {
	kind string
	x, y int
	text string
}

type point struct{ x, y int }

type arrow struct {
	dashed bool
	points []point
	label  string
	at     point
}

// kinds are the kinds of boxes and bars.
var kinds = []string{"plain", "user", "server", "work", "good", "bad", "note"}

// Parse reads a drawing. Its errors name the line.
func Parse(r io.Reader) (*Picture, error) {
	p := &Picture{}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.statement(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return p, p.check()
}

// statement adds the element of one line.
func (p *Picture) statement(line string) error {
	head, labels := line, []string(nil)
	if before, after, found := strings.Cut(line, "|"); found {
		head = before
		for l := range strings.SplitSeq(after, "|") {
			labels = append(labels, strings.TrimSpace(l))
		}
	}
	verb, rest, _ := strings.Cut(strings.TrimSpace(head), " ")
	words := strings.Fields(rest)
	var err error
	switch verb {
	case "size":
		var n []int
		if n, err = numbers(words, 2); err == nil {
			p.Width, p.Height = n[0], n[1]
		}
	case "title":
		p.Title = rest
	case "area":
		err = add(&p.areas, shape{kind: "area", lines: labels}, words)
	case "box":
		if len(words) < 2 || !slices.Contains(kinds, words[1]) {
			return fmt.Errorf("a box needs a name and one of the kinds %v", kinds)
		}
		err = add(&p.boxes, shape{name: words[0], kind: words[1], lines: labels}, words[2:])
	case "bar":
		if len(words) < 1 || !slices.Contains(kinds, words[0]) {
			return fmt.Errorf("a bar needs one of the kinds %v", kinds)
		}
		err = add(&p.bars, shape{kind: words[0], lines: labels}, words[1:])
	case "line":
		var n []int
		if n, err = numbers(words, 4); err == nil {
			p.lines = append(p.lines, [4]int(n))
		}
	case "text":
		if len(words) != 3 || len(labels) != 1 {
			return fmt.Errorf("text needs a kind, two numbers and one line")
		}
		var n []int
		if n, err = numbers(words[1:], 2); err == nil {
			p.texts = append(p.texts, text{words[0], n[0], n[1], labels[0]})
		}
	case "arrow", "dashed":
		return p.arrow(verb == "dashed", words, labels)
	default:
		return fmt.Errorf("unknown statement %q", verb)
	}
	return err
}

// add appends a shape with its four numbers.
func add(list *[]shape, s shape, words []string) error {
	n, err := numbers(words, 4)
	if err != nil {
		return err
	}
	s.x, s.y, s.w, s.h = n[0], n[1], n[2], n[3]
	*list = append(*list, s)
	return nil
}

// arrow adds an arrow; its boxes must be declared before it.
func (p *Picture) arrow(dashed bool, words, labels []string) error {
	if len(words) < 2 {
		return fmt.Errorf("an arrow needs two ends")
	}
	a := arrow{dashed: dashed}
	ends := []point{}
	for _, w := range words {
		pt, err := p.point(w)
		if err != nil {
			return err
		}
		ends = append(ends, pt)
	}
	a.points = append([]point{ends[0]}, ends[2:]...) // the points between follow both ends
	a.points = append(a.points, ends[1])
	if len(labels) > 0 {
		label, at, moved := strings.Cut(labels[0], "@")
		a.label = strings.TrimSpace(label)
		first, last := a.points[(len(a.points)-1)/2], a.points[(len(a.points)-1)/2+1]
		a.at = point{(first.x + last.x) / 2, (first.y+last.y)/2 - 6}
		if moved {
			var err error
			if a.at, err = p.point(strings.TrimSpace(at)); err != nil {
				return err
			}
		}
	}
	p.arrows = append(p.arrows, a)
	return nil
}

// point reads "X,Y", or "NAME.side" of a box.
func (p *Picture) point(word string) (point, error) {
	if x, y, found := strings.Cut(word, ","); found {
		n, err := numbers([]string{x, y}, 2)
		if err != nil {
			return point{}, err
		}
		return point{n[0], n[1]}, nil
	}
	name, side, _ := strings.Cut(word, ".")
	i := slices.IndexFunc(p.boxes, func(s shape) bool { return s.name == name })
	if i < 0 {
		return point{}, fmt.Errorf("there is no box %q", name)
	}
	b := p.boxes[i]
	switch side {
	case "l":
		return point{b.x, b.y + b.h/2}, nil
	case "r":
		return point{b.x + b.w, b.y + b.h/2}, nil
	case "t":
		return point{b.x + b.w/2, b.y}, nil
	case "b":
		return point{b.x + b.w/2, b.y + b.h}, nil
	}
	return point{}, fmt.Errorf("%q is no side of a box; use l, r, t or b", word)
}

func numbers(words []string, count int) ([]int, error) {
	if len(words) != count {
		return nil, fmt.Errorf("found %d numbers instead of %d", len(words), count)
	}
	var list []int
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", w)
		}
		list = append(list, n)
	}
	return list, nil
}

// Read parses a file.
func Read(path string) (*Picture, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p, err := Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
