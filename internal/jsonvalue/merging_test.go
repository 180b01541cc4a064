package jsonvalue_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
)

func TestMergingIsThePatchBetweenDecodedValues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var value func(depth int) string
	object := func(depth int) string {
		var fields []string
		for c := 'a'; c < 'e'; c++ {
			if rnd.IntN(2) == 0 {
				fields = append(fields, fmt.Sprintf(`"%c":%s`, c, value(depth-1)))
			}
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	value = func(depth int) string {
		if depth <= 0 || rnd.IntN(3) == 0 {
			return []string{`1`, `2`, `"x"`, `null`, `true`, `[]`, `[1,{"a":2}]`, `{}`}[rnd.IntN(8)]
		}
		return object(depth)
	}
	latter := func(_ []string, _, list []any) any { return list }
	for range 5_000 {
		from, to := object(4), object(4)
		got, err := jsonvalue.Merging([]byte(from), []byte(to), latter)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := jsonvalue.Decode([]byte(from))
		b, _ := jsonvalue.Decode([]byte(to))
		if want := patch.Between(a.(map[string]any), b.(map[string]any)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s and %s: got %v, want %v", from, to, got, want)
		}
	}
	for _, text := range []string{`{"a":1`, `{"a":}`, ``, `[]`} {
		if _, err := jsonvalue.Merging([]byte(text), []byte(`{"a":2}`), latter); err == nil {
			t.Errorf("%q: no error", text)
		}
		if _, err := jsonvalue.Merging([]byte(`{"a":2}`), []byte(text), latter); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestListsThatReplaceOthersCanBeReplaced(t *testing.T) {
	from := `{"a":{"b":[1,2],"c":[3],"d":null,"e":5},"f":[6]}`
	to := `{"a":{"b":[1],"c":[3],"d":[4],"e":[5]},"f":[7],"g":[8]}`
	var paths []string
	got, err := jsonvalue.Merging([]byte(from), []byte(to), func(path []string, old, new []any) any {
		paths = append(paths, strings.Join(path, "."))
		return fmt.Sprint(old, new)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"b": "[1 2] [1]", "d": []any{int64(4)}, "e": []any{int64(5)}}, "f": "[6] [7]", "g": []any{int64(8)}}
	slices.Sort(paths)
	if !reflect.DeepEqual(got, want) || strings.Join(paths, " ") != "a.b f" {
		t.Errorf("got %v for %q, want %v", got, paths, want)
	}
}
