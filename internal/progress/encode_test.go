package progress

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/storage"
)

func TestBasesAreIdentifiedByTheirContent(t *testing.T) {
	one, same, other := BaseID(state("1")), BaseID(state("1")), BaseID(state("2"))
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(one) || one != same || one == other {
		t.Errorf("got %q, %q and %q", one, same, other)
	}
	if got := BaseID(nil); got != "" {
		t.Errorf("no base: got %q", got)
	}
	if got := BaseID(map[string]any{"spec": func() {}}); got != "" {
		t.Errorf("a base that cannot be encoded: got %q", got)
	}
}

// noise returns a text that cannot be compressed.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[random.IntN(64)])
	}
	return b.String()
}

func TestNotesHaveAtMost32KiB(t *testing.T) {
	largest := 0
	for size := 31_000; size < 34_000; size += 150 {
		n := &Note{Reason: cause.Create}
		n.Saw("a", state(noise(size)), second(1))
		r, err := n.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got := len(*r.Message); got > 1000 { // not a digest
			largest = max(largest, got)
		}
	}
	if largest > 32<<10 || largest < 32<<10-300 {
		t.Errorf("the largest note has %d bytes, want 32 KiB", largest)
	}
}

func TestChangesThatDoNotFitIntoTheNoteAreAnError(t *testing.T) {
	for size, fits := range map[int]bool{20_000: true, 40_000: false} {
		n := &Note{Reason: cause.Create, Todo: []Todo{{Handler: "a", Patch: map[string]any{"spec": map[string]any{"x": noise(size)}}}}}
		n.Saw("a", state(noise(size)), second(1))
		if r, err := n.Encode(); (err == nil) != fits || !fits && !errors.Is(err, ErrNoteTooLarge) {
			t.Errorf("%d bytes: got %v, error %v", size, r, err)
		}
	}
}

func TestSmallNotesAreStoredAsTheyAre(t *testing.T) {
	for size, packed := range map[int]bool{10: false, 2000: true} {
		n := &Note{Reason: cause.Create, Key: "k"}
		n.Saw("a", state(strings.Repeat("x", size)), second(1))
		r, err := n.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(*r.Message, compressed); got != packed {
			t.Errorf("%d bytes: %s", size, *r.Message)
		}
		if back, err := DecodeNote(r, nil); err != nil || !back.Equal(&Note{Reason: cause.Create, Base: n.Base, essences: n.essences, saw: n.saw}) {
			t.Errorf("%d bytes: got %v, error %v", size, back, err)
		}
	}
}

func TestTheKeyBelongsToTheHandlingThatBeganThen(t *testing.T) {
	n := &Note{Reason: cause.Create, Key: "k", Started: second(0)}
	n.Saw("a", state("1"), second(1))
	r, err := n.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		record storage.Record
		want   string
	}{
		"the same handling": {storage.Record{Started: second(0), Purpose: "create"}, "k"},
		"a later handling":  {storage.Record{Started: second(1), Purpose: "create"}, ""},
		"another reason":    {storage.Record{Started: second(0), Purpose: "update"}, ""},
	} {
		back, err := DecodeNote(r, map[string]storage.Record{"a": c.record})
		if err != nil || back.Key != c.want || back.Started.IsZero() != (c.want == "") {
			t.Errorf("%s: the key is %q since %s, error %v", name, back.Key, back.Started, err)
		}
	}
}

func TestADelayOfOneNanosecondCounts(t *testing.T) {
	r := storage.Record{Delayed: second(10), Delay: time.Nanosecond}
	if got := left(r, second(0)); got != time.Nanosecond {
		t.Errorf("got %s", got)
	}
}

func TestDamagedNotesAreReported(t *testing.T) {
	for name, message := range map[string]string{
		"no JSON":            `{"v":2`,
		"not packed":         "gz:not base64",
		"a missing essence":  `{"v":2,"saw":{"a":{"essence":1}}}`,
		"the next essence":   `{"v":2,"essences":[{}],"saw":{"a":{"essence":1}}}`,
		"a negative essence": `{"v":2,"essences":[{}],"saw":{"a":{"essence":-1}}}`,
		"an odd essence":     `{"v":2,"essences":[1]}`,
		"an essence of null": `{"v":2,"essences":[null]}`,
		"an odd moment":      `{"v":2,"essences":[{}],"saw":{"a":{"essence":0,"stopped":"now"}}}`,
		"an odd patch":       `{"v":2,"todo":[{"handler":"a","patch":1}]}`,
		"half of a patch":    `{"v":2,"todo":[{"handler":"a"}]}`,
		"too many patches":   `{"v":2,"todo":[` + strings.Repeat(`{"handler":"a","patch":{}},`, maxTodo) + `{"handler":"a","patch":{}}]}`,
	} {
		var malformed *storage.MalformedError
		if n, err := DecodeNote(storage.Record{Purpose: "update", Message: &message}, nil); !errors.As(err, &malformed) || !n.Empty() {
			t.Errorf("%s: got %+v, error %v", name, n, err)
		}
	}
}

func TestAnEssenceThatCannotBeEncodedIsAnError(t *testing.T) {
	n := &Note{Reason: cause.Create}
	n.Saw("a", map[string]any{"spec": func() {}}, second(1))
	if r, err := n.Encode(); err == nil {
		t.Errorf("got %v", r)
	}
	n = &Note{Reason: cause.Create, Todo: []Todo{{"a", map[string]any{"spec": func() {}}}}}
	if r, err := n.Encode(); err == nil {
		t.Errorf("a patch: got %v", r)
	}
}

func TestANoteOfVersionOneWithoutAnEssenceTellsNothing(t *testing.T) {
	for _, seen := range []string{`1`, `null`, `[]`} {
		message := `{"key":"K","seen":` + seen + `}`
		record := storage.Record{Started: second(0), Purpose: "create", Message: &message}
		if n, err := DecodeNote(record, map[string]storage.Record{"a": finished(1)}); err != nil || !n.Empty() {
			t.Errorf("%s: got %+v, error %v", seen, n, err)
		}
	}
}

// Essences have no empty labels, and an essence after a change must be like one that
// is built from the object.
func TestAnAbsorbedChangeLeavesNoEmptyParts(t *testing.T) {
	labeled := func(names ...string) map[string]any {
		labels := map[string]any{}
		for _, name := range names {
			labels[name] = "x"
		}
		return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"field": "1"}}
	}
	n := &Note{}
	n.Saw("a", labeled("b"), time.Time{})
	n.Absorb(labeled("a", "b"), labeled("a"))
	if got := n.Earlier("a"); len(got) != 1 || got["spec"] == nil {
		t.Errorf("got %v", got)
	}
}

func TestNotesOfTooManyEssencesOrHandlersAreMalformed(t *testing.T) {
	text := func(essences, handlers int) string {
		var seen, saw []string
		for i := range essences {
			seen = append(seen, fmt.Sprintf(`{"n":%d}`, i))
		}
		for i := range handlers {
			saw = append(saw, fmt.Sprintf(`"h%d":{"essence":0}`, i))
		}
		return `{"v":2,"essences":[` + strings.Join(seen, ",") + `],"saw":{` + strings.Join(saw, ",") + `}}`
	}
	for name, c := range map[string]struct {
		essences, handlers int
		malformed          bool
	}{
		"as many essences as possible": {64, 1, false},
		"too many essences":            {65, 1, true},
		"as many handlers as possible": {1, 16_384, false},
		"too many handlers":            {1, 16_385, true},
	} {
		message := text(c.essences, c.handlers)
		n, err := DecodeNote(storage.Record{Purpose: "update", Message: &message}, nil)
		if malformed := errors.As(err, new(*storage.MalformedError)); malformed != c.malformed || n.Empty() != c.malformed {
			t.Errorf("%s: malformed %v, %d handlers, error %v", name, malformed, len(n.saw), err)
		}
	}
}
