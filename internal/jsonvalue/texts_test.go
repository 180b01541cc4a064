package jsonvalue

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTextsCountEachTimeTheyAppear(t *testing.T) {
	type part struct {
		Name  string
		Role  *string
		Inner []part
		Other any
		Flags [1000]bool
	}
	text := strings.Repeat("x", 1000)
	type ring struct{ Next *ring }
	var around ring
	around.Next = &around
	for name, c := range map[string]struct {
		value any
		want  int
	}{
		"nil":               {nil, 0},
		"a number":          {5, 0},
		"a text":            {text, 1000},
		"bytes":             {[]byte(text), 1000},
		"a struct":          {part{Name: text, Role: &text, Other: []any{text, 1}}, 3000},
		"parts":             {[]part{{Name: text}, {Inner: []part{{Role: &text}}}}, 2000},
		"a map":             {map[string]any{"key": text}, 1003},
		"many":              {[]string{text, text, text, text, text, text}, 5000},
		"a value in itself": {&around, 0},
	} {
		got := TextSize(c.value, 4500)
		if c.want <= 4500 && got != c.want || c.want > 4500 && got <= 4500 {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestLargeValuesAreCountedByTheirParts(t *testing.T) {
	const large = 64 << 10
	type chain struct{ Next *chain }
	var ring chain
	ring.Next = &ring
	for name, c := range map[string]struct {
		value any
		want  bool
	}{
		"nil":               {nil, false},
		"a number":          {1, false},
		"a text":            {strings.Repeat("x", large-1), false},
		"a long text":       {strings.Repeat("x", large), true},
		"few items":         {make([]int, large-2), false},
		"many items":        {make([]int, large), true},
		"bytes":             {make([]byte, large), true},
		"long names":        {map[string]bool{strings.Repeat("x", large): true}, true},
		"items of items":    {make([][300]struct{ A, B bool }, 100), true},
		"a value in itself": {&ring, false},
		"nil pointers":      {make([]*chain, 1000), false},
		"a nil map":         {map[string]int(nil), false},
	} {
		if got := Extensive(c.value, large); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Each level would double the work.
func TestAValueThatContainsItselfTwiceEnds(t *testing.T) {
	type twice struct{ A, B *twice }
	var v twice
	v.A, v.B = &v, &v
	if n := TextSize(&v, 1000); n <= 1000 {
		t.Errorf("got %d", n)
	}
	if !Extensive(&v, 1000) {
		t.Error("it counts as small")
	}
}

// A time has the names of its time zone, which are not in its JSON.
func TestHiddenTextsDoNotCount(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	if n := TextSize([]time.Time{time.Now().In(zone)}, 1000); n != 0 {
		t.Errorf("got %d", n)
	}
}

// guarded encodes itself, because its map has a lock.
type guarded struct {
	lock sync.Mutex
	M    map[string]string
}

func (g *guarded) MarshalJSON() ([]byte, error) {
	g.lock.Lock()
	defer g.lock.Unlock()
	return json.Marshal(len(g.M))
}

// unstructured is like the type of Kubernetes.
type unstructured struct{ Object map[string]any }

func (u *unstructured) MarshalJSON() ([]byte, error)        { return json.Marshal(u.Object) }
func (u *unstructured) UnstructuredContent() map[string]any { return u.Object }

type extension struct{ Raw []byte }

func (e extension) MarshalJSON() ([]byte, error) { return e.Raw, nil }

// A map may be changed while package json does not read it.
func TestFieldsThatPackageJSONDoesNotReadAreNotRead(t *testing.T) {
	text := strings.Repeat("x", 1000)
	type hidden struct {
		Name  string
		Cache map[string]string `json:"-"`
		Dash  string            `json:"-,"`
	}
	var none *guarded
	object := unstructured{map[string]any{"a": text}}
	for name, c := range map[string]struct {
		value any
		want  int
	}{
		"hidden":                 {hidden{text, map[string]string{text: text}, "dash"}, 1004},
		"guarded":                {&guarded{M: map[string]string{text: text}}, 0},
		"guarded in a struct":    {&struct{ G guarded }{guarded{M: map[string]string{text: text}}}, 0},
		"no pointer":             {none, 0},
		"unstructured":           {&object, 1001},
		"unstructured in a list": {[]unstructured{object}, 1001},
		"raw JSON":               {json.RawMessage(text), 1000},
		"an extension":           {[]extension{{[]byte(text)}}, 1000},
	} {
		if got := TextSize(c.value, 4500); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
