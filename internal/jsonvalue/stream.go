package jsonvalue

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Stream splits JSON that arrives over a connection into values. It checks only the
// structure around them; the caller must check the values. One value that cannot be
// decoded therefore does not hide the values after it, and their depth is not limited.
type Stream struct {
	source io.Reader
	max    int    // the maximum number of bytes of a value
	buf    []byte // bytes from the source
	pos    int    // the number of consumed bytes of buf
	name   []byte // the name of the current field
	depth  int    // the number of objects and arrays around the current position
	err    error  // the error of the source
}

// NewStream returns a stream of the values of the source. Values with more bytes than
// largest are skipped; see [TooLongError].
func NewStream(source io.Reader, largest int) *Stream {
	return &Stream{source: source, max: largest}
}

// SyntaxError means that the structure of a JSON text is wrong.
type SyntaxError struct{ text string }

func (e *SyntaxError) Error() string { return "invalid JSON: " + e.text }

// TooLongError means that a value was skipped because of its length.
type TooLongError struct {
	Head []byte // the first bytes of the value, at most 1 MiB
	LimitError
}

// maxHead limits the head of skipped values. It should cover the metadata of an object.
const maxHead = 1 << 20

const (
	smallBuffer = 16 << 10  //mutate:skip any initial size works
	largeBuffer = 256 << 10 //mutate:skip an empty buffer above this size is released
)

// Inside reports whether the current position is inside of an object or array.
func (s *Stream) Inside() bool { return s.depth > 0 }

// Peek returns the next byte that is not white space. At the end of the text it returns
// io.EOF, or io.ErrUnexpectedEOF inside of an object or array.
func (s *Stream) Peek() (byte, error) {
	for {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\r', '\n':
				s.pos++
			default:
				return c, nil
			}
		}
		if err := s.more(); err != nil {
			if errors.Is(err, io.EOF) && s.depth > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
}

// Object calls fn for every field of the next value, which must be an object. The name
// is quoted, as in the text. fn must consume the field's value.
func (s *Stream) Object(fn func(name []byte) error) error {
	return s.each('{', '}', func() error {
		if c, err := s.Peek(); err != nil {
			return err
		} else if c != '"' {
			return s.unexpected(c)
		}
		name, err := s.Value()
		if err != nil {
			return err
		}
		s.name = append(s.name[:0], name...)
		switch c, err := s.Peek(); {
		case err != nil:
			return err
		case c != ':':
			return s.unexpected(c)
		}
		s.pos++
		return fn(s.name)
	})
}

// Array calls fn for every item of the next value, which must be an array. fn must
// consume the item.
func (s *Stream) Array(fn func() error) error { return s.each('[', ']', fn) }

// each calls fn for each element between the brackets of the next value.
func (s *Stream) each(opening, closing byte, fn func() error) error {
	switch c, err := s.Peek(); {
	case err != nil:
		return err
	case c != opening:
		return s.unexpected(c)
	}
	s.pos++
	s.depth++
	for first := true; ; first = false {
		c, err := s.Peek()
		if err != nil {
			return err
		}
		switch {
		case c == closing:
			s.pos++
			s.depth--
			return nil
		case first:
		case c != ',':
			return s.unexpected(c)
		default:
			s.pos++
		}
		if err := fn(); err != nil {
			return err
		}
	}
}

func (s *Stream) unexpected(c byte) error {
	return &SyntaxError{fmt.Sprintf("unexpected %q", c)}
}

// Skip consumes the next value, which may be too long.
func (s *Stream) Skip() error {
	_, err := s.Value()
	var long *TooLongError
	if errors.As(err, &long) {
		return nil
	}
	return err
}

// Value returns the bytes of the next value. They are valid until the next call of a
// method. A value that is too long is consumed, and the error is a [*TooLongError].
func (s *Stream) Value() ([]byte, error) {
	switch c, err := s.Peek(); {
	case err != nil:
		return nil, err
	case c == ',' || c == ':' || c == ']' || c == '}':
		return nil, s.unexpected(c)
	}
	cut := cutter{}
	length := 0 // the length of the value so far
	var long *TooLongError
	for {
		n, ended := cut.next(s.buf[s.pos+length:])
		length += n
		if length > s.max && long == nil {
			head := s.buf[s.pos:min(s.pos+length, s.pos+maxHead)]
			long = &TooLongError{slices.Clone(head), LimitError{"bytes", s.max}}
		}
		if ended {
			break
		}
		if long != nil {
			s.pos, length = s.pos+length, 0
		}
		if err := s.more(); err != nil {
			if errors.Is(err, io.EOF) && cut.scalar && s.depth == 0 {
				break
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	value := s.buf[s.pos : s.pos+length]
	s.pos += length
	if long != nil {
		return nil, long
	}
	return value, nil
}

// more reads more bytes and keeps those that were not consumed.
func (s *Stream) more() error {
	if s.err != nil {
		return s.err
	}
	switch rest := len(s.buf) - s.pos; {
	case rest == 0 && cap(s.buf) > largeBuffer:
		s.buf, s.pos = nil, 0
	case rest == 0:
		s.buf, s.pos = s.buf[:0], 0
	case len(s.buf) == cap(s.buf) && s.pos > 0:
		copy(s.buf, s.buf[s.pos:])
		s.buf, s.pos = s.buf[:rest], 0
	}
	if len(s.buf) == cap(s.buf) {
		s.buf = slices.Grow(s.buf, max(smallBuffer, len(s.buf)))
	}
	for range 100 {
		n, err := s.source.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf, s.err = s.buf[:len(s.buf)+n], err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}
