package storage

import (
	"errors"
	"slices"
	"testing"
)

func TestDamagedRecordsBecomeOneError(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for name, c := range map[string]struct {
		add    func(*damage)
		text   string // "" means no error
		ids    []string
		causes []error
	}{
		"none": {add: func(*damage) {}},
		"one":  {func(d *damage) { d.add("b", "here", one) }, "malformed state in here: one", []string{"b"}, []error{one}},
		"two in one place": {func(d *damage) { d.add("b", "here", one); d.add("a", "here", one) },
			"malformed state in here: one", []string{"a", "b"}, []error{one}},
		"two in two places": {func(d *damage) { d.add("b", "here", one); d.add("a", "there", two) },
			"malformed state in there, here: two\none", []string{"a", "b"}, []error{one, two}},
		"all of another storage": {func(d *damage) {
			d.join(&MalformedError{Where: "there", IDs: []string{"a", "c"}, Err: two})
			d.add("b", "here", one)
		}, "malformed state in there, here: two\none", []string{"a", "b", "c"}, []error{one, two}},
	} {
		var d damage
		c.add(&d)
		err := d.err()
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		malformed, ok := err.(*MalformedError)
		if !ok || err.Error() != c.text || !slices.Equal(malformed.IDs, c.ids) {
			t.Errorf("%s: got %v", name, err)
		}
		for _, cause := range c.causes {
			if !errors.Is(err, cause) {
				t.Errorf("%s: the error does not wrap %v", name, cause)
			}
		}
	}
}
