package jsonvalue_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
)

func TestDifferingLeavesOutEqualFields(t *testing.T) {
	for _, test := range []struct{ old, new, before, after string }{
		{`{"a":1,"b":{"c":[1],"d":2}}`, `{"a":1,"b":{"c":[1],"d":3}}`, `{"b":{"d":2}}`, `{"b":{"d":3}}`},
		{`{"a":1}`, `{"b":1}`, `{"a":1}`, `{"b":1}`},
		{`{"a":{"b":1}}`, `{"a":[1]}`, `{"a":{"b":1}}`, `{"a":[1]}`},
		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1,"d":3}}}`, `{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1,"d":3}}}`}, // too deep
		{` {"a" : 1 , "x":"\u0061"}`, `{"a":1,"x":"a"}`, `{"x":"a"}`, `{"x":"a"}`},
		{`{"a":1,"a":2}`, `{"a":2}`, `{}`, `{}`},
		{`null`, `{"a":1}`, `null`, `{"a":1}`},
	} {
		before, after, err := jsonvalue.Differing([]byte(test.old), []byte(test.new), 2)
		wantBefore, _ := jsonvalue.Decode([]byte(test.before))
		wantAfter, _ := jsonvalue.Decode([]byte(test.after))
		if err != nil || !reflect.DeepEqual(before, wantBefore) || !reflect.DeepEqual(after, wantAfter) {
			t.Errorf("%s and %s: got %v and %v, %v", test.old, test.new, before, after, err)
		}
	}
	for _, text := range []string{`{"a":1`, `{"a":}`, ``} {
		if _, _, err := jsonvalue.Differing([]byte(text), []byte(`{"a":2}`), 2); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestDifferingHasTheSameDifferences(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) string
	value = func(depth int) string {
		if depth == 0 || rnd.IntN(3) == 0 {
			return []string{`1`, `2`, `1.0`, `"x"`, `"\u0078"`, `null`, `true`, `[]`, `[1,{"a":2}]`, `{}`}[rnd.IntN(10)]
		}
		var fields []string
		for range rnd.IntN(4) {
			fields = append(fields, fmt.Sprintf(`"%c":%s`, 'a'+rnd.IntN(4), value(depth-1)))
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	for range 20_000 {
		old, new, levels := value(4), value(4), rnd.IntN(5)
		before, after, err := jsonvalue.Differing([]byte(old), []byte(new), levels)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := jsonvalue.Decode([]byte(old))
		b, _ := jsonvalue.Decode([]byte(new))
		if got, want := diff.Of(before, after), diff.Of(a, b); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s and %s: got %v, want %v", old, new, got, want)
		}
	}
}
