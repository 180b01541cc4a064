package jsonvalue

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// chunks is a reader that returns one piece in each call.
type chunks []string

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	if (*c)[0] = (*c)[0][n:]; (*c)[0] == "" {
		*c = (*c)[1:]
	}
	return n, nil
}

// stalled is a reader that returns nothing and no error.
type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, nil }

func TestBoundsAreExact(t *testing.T) {
	t.Parallel()
	// Longer than texts that are too short for many values.
	wide := func(values int, last string) string { return "[" + strings.Repeat("10,", values-2) + last + "]" }
	// With more brackets than levels, so that counting them is not enough.
	nested := func(depth int) string {
		return `[[],[],` + strings.Repeat(`{"a":`, depth-1) + "1" + strings.Repeat("}", depth-1) + "]"
	}
	mixed := strings.Repeat(`[{"a":`, MaxDepth*6/10) + "1" + strings.Repeat("}]", MaxDepth*6/10)
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"the largest object":        {`"` + strings.Repeat("x", 16<<20-2) + `"`, MaxObject, ""},
		"an object too large":       {`"` + strings.Repeat("x", 16<<20-1) + `"`, MaxObject, "it has more than 16777216 bytes"},
		"the deepest":               {nested(MaxDepth), MaxStored, ""},
		"one level too much":        {nested(MaxDepth + 1), MaxStored, "it has more than 1000 levels"},
		"objects in arrays":         {mixed, MaxStored, "it has more than 1000 levels"},
		"the widest":                {wide(MaxValues, "10"), MaxStored, ""},
		"one value too much":        {wide(MaxValues+1, "10"), MaxStored, "it has more than 262144 values"},
		"an object as the last":     {wide(MaxValues-4, "{}"), MaxStored, ""},
		"an object too much":        {wide(MaxValues-3, "{}"), MaxStored, "it has more than 262144 values"},
		"levels after an empty one": {`["",` + nested(MaxDepth) + "]", MaxStored, "it has more than 1000 levels"},
		"levels after backslashes":  {`["\\",` + nested(MaxDepth) + "]", MaxStored, "it has more than 1000 levels"},
		"levels after a quote":      {`["\"",` + nested(MaxDepth) + "]", MaxStored, "it has more than 1000 levels"},
		"levels after one byte":     {`["a",` + nested(MaxDepth) + "]", MaxStored, "it has more than 1000 levels"},
	} {
		text := ""
		if err := Check([]byte(c.text), c.limit); err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestAValueOfTheLargestSizeIsNotTooLong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"12345": true, "123456": false, `"abc"`: true, `"abcd"`: false} {
		s := NewStream(strings.NewReader(text), 5)
		if v, err := s.Value(); (err == nil) != want || want && string(v) != text {
			t.Errorf("%s: got %q, error %v", text, v, err)
		}
	}
}

func TestTheHeadOfALongValueIsBounded(t *testing.T) {
	t.Parallel()
	const head = 1 << 20
	s := NewStream(strings.NewReader(`"`+strings.Repeat("x", 4<<20)+`"`), 2<<20)
	var long *TooLongError
	if _, err := s.Value(); !errors.As(err, &long) || len(long.Head) != head {
		t.Fatalf("error %v", err)
	}
}

func TestLongValuesDoNotTakeMoreMemoryThanTheLimit(t *testing.T) {
	t.Parallel()
	s := NewStream(strings.NewReader(`["`+strings.Repeat("x", 4<<20)+`",1]`), 1000)
	var most int
	err := s.Array(func() error {
		err := s.Skip()
		most = max(most, cap(s.buf))
		return err
	})
	if err != nil || most > largeBuffer {
		t.Errorf("the buffer has %d bytes, error %v", most, err)
	}
}

func TestALargeBufferIsNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first string
		kept  bool
	}{
		"large": {"[\"" + strings.Repeat("x", largeBuffer+smallBuffer) + `"`, false},
		"small": {"[1", true},
	} {
		s := NewStream(&chunks{c.first, ",2]", ",3"}, 1<<20)
		var got []string
		var before, after []byte
		err := s.Array(func() error {
			v, err := s.Value()
			got = append(got, string(v[:1]))
			if len(got) == 1 {
				before = s.buf
			} else {
				after = s.buf
			}
			return err
		})
		if err != nil || len(got) != 2 || got[1] != "2" {
			t.Errorf("%s: got %q, error %v", name, got, err)
		}
		if kept := &before[:1][0] == &after[:1][0]; kept != c.kept {
			t.Errorf("%s: the buffer is kept: %t", name, kept)
		}
	}
}

func TestASourceWithoutProgressIsAnError(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	go func() {
		s := NewStream(stalled{}, 100)
		if _, err := s.Value(); !errors.Is(err, io.ErrNoProgress) {
			ended <- err
			return
		}
		_, err := s.Peek() // it is not asked again
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the stream reads for ever")
	}
}

func TestStreamsReportWhereTheyAre(t *testing.T) {
	t.Parallel()
	s := NewStream(strings.NewReader("[1] "), 100)
	if s.Inside() {
		t.Error("inside before anything was entered")
	}
	if err := s.Array(func() error {
		if !s.Inside() {
			t.Error("not inside of an array")
		}
		return s.Skip()
	}); err != nil || s.Inside() {
		t.Errorf("after the array: inside %t, error %v", s.Inside(), err)
	}
	if c, err := s.Peek(); c != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %q, error %v", c, err)
	}
	for name, err := range map[string]error{"array": s.Array(nil), "object": s.Object(nil), "skip": s.Skip()} {
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s at the end: %v", name, err)
		}
	}
}

func TestContainersOfTheWrongKindAreErrors(t *testing.T) {
	t.Parallel()
	for text, enter := range map[string]func(*Stream) error{
		"{}": func(s *Stream) error { return s.Array(s.Skip) },
		"[]": func(s *Stream) error { return s.Object(func([]byte) error { return s.Skip() }) },
		"]":  func(s *Stream) error { return s.Skip() },
	} {
		var syntax *SyntaxError
		if err := enter(NewStream(strings.NewReader(text), 100)); !errors.As(err, &syntax) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for _, text := range []string{"[", "[1", "[1,", `["a"`, "[{} "} {
		s := NewStream(strings.NewReader(text), 100)
		if err := s.Array(s.Skip); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestNumbersThatAreCutAreErrors(t *testing.T) {
	for _, text := range []string{`[-]`, `[1.`, `{"a": 1e}`, `-`} {
		if value, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: %v", text, value)
		}
	}
}
