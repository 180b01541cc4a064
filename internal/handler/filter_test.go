package handler

import (
	"testing"

	metalabels "k8s.io/apimachinery/pkg/labels"
)

// thing is an object with these labels, annotations and fields.
type thing struct{ labels, annotations, fields map[string]any }

func (o thing) Labels() map[string]any      { return o.labels }
func (o thing) Annotations() map[string]any { return o.annotations }
func (o thing) Lookup(path ...string) (any, bool) {
	v, present := o.fields[path[0]]
	return v, present
}

func TestMatchers(t *testing.T) {
	cases := map[string]struct {
		match         Matcher
		one, null     bool // the results for the value 1 and for null
		other, absent bool // the results for the value 2 and for a missing value
	}{
		"Any":     {Any, true, true, true, true},
		"Present": {Present, true, true, true, false},
		"Absent":  {Absent, false, false, false, true},
		"Equal":   {Equal(1.0), true, false, false, false},
		"null":    {Equal(nil), false, true, false, false},
	}
	for name, c := range cases {
		if c.match(int64(1), true) != c.one || c.match(nil, true) != c.null || c.match(int64(2), true) != c.other || c.match(nil, false) != c.absent {
			t.Errorf("%s: got %v, %v, %v, %v, want %+v", name, c.match(int64(1), true), c.match(nil, true), c.match(int64(2), true), c.match(nil, false), c)
		}
	}
}

func TestAllCriteriaMustMatch(t *testing.T) {
	is := func(name string) []Key { return []Key{{Name: "other", Match: Absent}, {Name: name, Match: Equal("x")}} }
	at := func(name string) []Field {
		return []Field{{Path: []string{"other"}, Match: Absent}, {Path: []string{name}, Match: Equal("x")}}
	}
	o := thing{map[string]any{"a": "x"}, map[string]any{"b": "x"}, map[string]any{"c": "x"}}
	cases := map[string]struct {
		criteria Criteria
		want     bool
	}{
		"none":                   {Criteria{}, true},
		"the selector matches":   {Criteria{Selector: selector(t, "a,!z")}, true},
		"the selector does not":  {Criteria{Labels: is("a"), Selector: selector(t, "z in (1)")}, false},
		"all match":              {Criteria{Labels: is("a"), Annotations: is("b"), Fields: at("c")}, true},
		"a label does not":       {Criteria{Labels: is("z"), Annotations: is("b"), Fields: at("c")}, false},
		"an annotation does not": {Criteria{Labels: is("a"), Annotations: is("z"), Fields: at("c")}, false},
		"a field does not":       {Criteria{Labels: is("a"), Annotations: is("b"), Fields: at("z")}, false},
		"only the labels do":     {Criteria{Labels: is("a"), Annotations: is("z"), Fields: at("z")}, false},
	}
	for name, c := range cases {
		if got := c.criteria.Match(o); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAChangeTouchesAValueOnEitherSide(t *testing.T) {
	x, y, none := Value{"x", true}, Value{"y", true}, Value{}
	cases := map[string]struct {
		change Change
		values []Value
		want   bool
	}{
		"any value":        {Change{}, []Value{none, y}, true},
		"no value":         {Change{}, []Value{none, none}, false},
		"the value before": {Change{Value: Equal("x")}, []Value{x, y}, true},
		"the value after":  {Change{Value: Equal("x")}, []Value{y, x}, true},
		"another value":    {Change{Value: Equal("x")}, []Value{y, none}, false},
		"a missing value":  {Change{Value: Absent}, []Value{y, none}, true},
		"no values at all": {Change{Value: Any}, nil, false},
	}
	for name, c := range cases {
		if got := c.change.Touches(c.values...); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAChangeHappensFromOneValueToAnother(t *testing.T) {
	x, y, null, none := Value{"x", true}, Value{"y", true}, Value{nil, true}, Value{}
	cases := map[string]struct {
		change   Change
		old, new Value
		moved    bool
		want     bool
	}{
		"anything":                   {Change{}, x, y, true, true},
		"unchanged, but must change": {Change{}, x, x, true, false},
		"unchanged, and may be":      {Change{}, x, x, false, true},
		"from null to missing":       {Change{}, null, none, true, true},
		"from x":                     {Change{Old: Equal("x")}, x, y, true, true},
		"not from x":                 {Change{Old: Equal("x")}, y, x, true, false},
		"to x":                       {Change{New: Equal("x")}, y, x, true, true},
		"not to x":                   {Change{New: Equal("x")}, x, y, true, false},
		"from x to y":                {Change{Old: Equal("x"), New: Equal("y")}, x, y, true, true},
		"from x to missing":          {Change{Old: Equal("x"), New: Equal("y")}, x, none, true, false},
		"from missing to y":          {Change{Old: Equal("x"), New: Equal("y")}, none, y, true, false},
	}
	for name, c := range cases {
		if got := c.change.Happened(c.old, c.new, c.moved); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func selector(t *testing.T, text string) metalabels.Selector {
	t.Helper()
	s, err := metalabels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
