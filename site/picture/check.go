package picture

import (
	"fmt"
	"unicode/utf8"
)

const (
	fontSize   = 13
	smallSize  = 12
	lineHeight = 17
)

// widthOf estimates the width of a text. It is rather too large.
func widthOf(s string, size float64) int {
	return int(float64(utf8.RuneCountInString(s)) * size * 0.53)
}

// check reports boxes that overlap, leave the drawing, or are too small for their text.
func (p *Picture) check() error {
	if p.Width == 0 || p.Title == "" {
		return fmt.Errorf("a size and a title are missing")
	}
	for i, b := range p.boxes {
		if b.x < 0 || b.y < 0 || b.x+b.w > p.Width || b.y+b.h > p.Height {
			return fmt.Errorf("the box %s leaves the drawing", b.name)
		}
		if need := len(b.lines)*lineHeight + 6; need > b.h {
			return fmt.Errorf("the box %s needs a height of %d", b.name, need)
		}
		for _, l := range b.lines {
			if need := widthOf(l, fontSize) + 8; need > b.w {
				return fmt.Errorf("the box %s needs a width of %d for %q", b.name, need, l)
			}
		}
		for _, o := range p.boxes[:i] {
			if b.x < o.x+o.w && o.x < b.x+b.w && b.y < o.y+o.h && o.y < b.y+b.h {
				return fmt.Errorf("the boxes %s and %s overlap", o.name, b.name)
			}
		}
	}
	for _, b := range p.bars {
		for _, l := range b.lines {
			if need := widthOf(l, fontSize) + 8; need > b.w {
				return fmt.Errorf("a bar needs a width of %d for %q", need, l)
			}
		}
	}
	for _, t := range p.texts {
		size := float64(fontSize)
		if t.kind == "small" || t.kind == "code" {
			size = smallSize
		}
		w := widthOf(t.text, size)
		from := t.x
		if t.kind == "middle" || t.kind == "head" {
			from -= w / 2
		}
		if from < 0 || from+w > p.Width+8 || t.y > p.Height {
			return fmt.Errorf("the text %q leaves the drawing", t.text)
		}
	}
	return nil
}
