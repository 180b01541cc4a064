package jsonvalue

// Walk reads a valid JSON text several times as fast as a [Reader], because it checks
// nothing. Of an invalid text it returns wrong values, which are parts of the text.
type Walk struct {
	text []byte
	pos  int
}

// NewWalk returns a walk through the text, which it does not copy.
func NewWalk(text []byte) Walk { return Walk{text: text} }

// Peek returns the first byte of the next value, or a closing bracket. At the end of the
// text it returns 0.
func (w *Walk) Peek() byte {
	for ; w.pos < len(w.text); w.pos++ {
		switch b := w.text[w.pos]; b {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return b
		}
	}
	return 0
}

// Take consumes the bracket if it is next. Otherwise it returns false.
func (w *Walk) Take(bracket byte) bool {
	if w.Peek() != bracket {
		return false
	}
	w.pos++
	return true
}

// Value consumes the next value and returns its bytes. At a closing bracket, and at the end
// of the text, it returns nil.
func (w *Walk) Value() []byte {
	switch w.Peek() {
	case 0, '}', ']':
		return nil
	}
	var cut cutter
	start := w.pos
	length, ended := cut.next(w.text[start:])
	if w.pos += length; !ended && !cut.scalar {
		return nil
	}
	return w.text[start:w.pos]
}
