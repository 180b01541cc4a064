package expr

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// evaluate returns the duration of an evaluation, the memory that it allocated, and its error.
func evaluate(ctx context.Context, t *testing.T, text string, object map[string]any) (took time.Duration, mebibytes uint64, err error) {
	t.Helper()
	x, err := env(t).Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	_, err = x.Eval(ctx, map[string]any{"object": object})
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return took, (after.TotalAlloc - before.TotalAlloc) >> 20, err
}

// With the cost tracking of cel-go, each of these took more than 20 seconds.
func TestLoopsTakeLinearTime(t *testing.T) {
	for text, item := range map[string]any{
		`object.a.all(x, x > 0)`:                           int64(1),
		`object.a.all(x, x in ["a", "k"])`:                 "k",
		`object.a.all(x, x.startsWith("k"))`:               "k",
		`object.a.exists(x, x == "y")`:                     "k",
		`object.a.all(x, has(x.k))`:                        map[string]any{"k": "v"},
		`object.a.exists(x, object.a.exists(y, y == "z"))`: "k",
	} {
		took, _, err := evaluate(t.Context(), t, text, map[string]any{"a": slices.Repeat([]any{item}, 80_000)})
		if err != nil && !errors.Is(err, errCost) {
			t.Errorf("%s: got the error %v", text, err)
		}
		if took > 5*time.Second {
			t.Errorf("%s: it took %v", text, took)
		}
	}
}

// Tenants choose the lists and texts. Each call pays before it runs.
func TestLargeArgumentsAreCharged(t *testing.T) {
	texts, numbers := slices.Repeat([]any{"xy"}, 50_000), append(slices.Repeat([]any{int64(0)}, 50_000), int64(1))
	object := map[string]any{
		"a": slices.Repeat([]any{int64(1)}, 50_000), "b": numbers, "c": slices.Clone(numbers), "t": texts,
		"s": strings.Repeat("x", 500_000), "r": strings.Repeat("x", 500_000), "long": slices.Repeat([]any{strings.Repeat("x", 1000)}, 400),
		"deep": slices.Repeat([]any{slices.Repeat([]any{int64(1)}, 100)}, 500), "m": map[string]any{}, "zone": "Europe/Berlin",
		"empty": slices.Repeat([]any{slices.Repeat([]any{[]any{}}, 100)}, 500),
	}
	keys := object["m"].(map[string]any)
	for i := range 50_000 {
		keys[strings.Repeat("k", 1+i%7)+string(rune(0x4e00+i%20_000))+string(rune(0x4e00+i/20_000))] = "v"
	}
	for _, text := range []string{
		`object.a.all(x, x in object.b)`,
		`object.a.all(x, object.b == object.c)`,
		`object.a.all(x, optional.of(object.b) == optional.of(object.c))`,
		`object.a.all(x, [object.deep] in [[object.deep]] || true)`,
		`object.a.all(x, object.s == object.r)`,
		`object.a.all(x, object.s <= object.r)`,
		`object.a.all(x, size(object.s) > x)`,
		`object.t.all(x, object.s.indexOf(x) < 0)`,
		`object.t.all(x, object.s.lastIndexOf(x) < 0)`,
		`object.t.all(x, !object.s.contains(x))`,
		`object.a.all(x, object.s.charAt(x) == "x")`,
		`object.a.all(x, object.s.substring(x) != "")`,
		`object.s.contains(object.r + "y") || object.s.contains(object.s)`,
		`object.a.all(x, object.s.matches("^x*$"))`,
		`size(object.a.map(x, object.b.reverse()))`,
		`size(object.a.map(x, object.b.sort()))`,
		`size(object.a.map(x, object.long.sort()))`,
		`size(object.a.map(x, object.b.sortBy(y, -y)))`,
		`size(object.a.map(x, object.b.slice(0, 40000)))`,
		`size(object.a.map(x, object.b.map(y, y)))`,
		`size(object.a.map(x, lists.range(10000)))`,
		`size(object.a.map(x, object.s.split("")))`,
		`object.a.all(x, size(object.deep.flatten()) > 0)`,
		`object.a.all(x, size(object.empty.flatten(2)) == 0)`,
		`size(object.deep.distinct()) > 0 && size(object.b.distinct()) > 0`,
		`sets.contains(object.b, object.c)`,
		`sets.intersects(object.deep, object.deep.map(x, x + [2]))`,
		`object.a.all(x, math.greatest(object.b) > 0)`,
		`object.a.exists(x, object.m.all(k, k == ""))`,
		`size(json.encode(object.a.map(x, object.s))) > 0`,
		`size("%s".format([object.a.map(x, object.s)])) > 0`,
		`object.a.all(x, timestamp("2024-01-01T00:00:00Z").getHours(object.zone) > 0 || true)`,
	} {
		took, used, err := evaluate(t.Context(), t, text, object)
		if !errors.Is(err, errCost) {
			t.Errorf("%s: got the error %v", text, err)
		}
		if took > 5*time.Second || used > 256 {
			t.Errorf("%s: it took %v and %d MiB", text, took, used)
		}
	}
}

// The texts of values take many times the memory of the values.
func TestTextsOfManyValuesTakeLittleMemory(t *testing.T) {
	keys := map[string]any{}
	for i := range 50_000 {
		keys[strconv.Itoa(i)] = int64(i)
	}
	for name, value := range map[string]any{
		"numbers": slices.Repeat([]any{int64(1)}, 400_000), "texts": slices.Repeat([]any{"a"}, 400_000), "keys": keys,
		"lists": slices.Repeat([]any{[]any{}}, 400_000), "maps": slices.Repeat([]any{map[string]any{}}, 400_000),
		"small maps": slices.Repeat([]any{map[string]any{"a": int64(1)}}, 100_000), "text": strings.Repeat("x", 4_000_000),
		"characters": strings.Repeat("\x01", 2<<20), "quotes": strings.Repeat(`"`, 2<<20),
	} {
		tried := map[string]bool{}
		for _, text := range []string{`size(json.encode(object.a)) > 0`, `size("%s".format([object.a])) > 0`, `size(strings.quote(object.a)) > 0`} {
			for part := 1; part <= 16; part *= 2 { // some of the parts are just below the limit
				_, used, err := evaluate(t.Context(), t, text, map[string]any{"a": firstPart(value, part)})
				if used > 36 {
					t.Errorf("%s, 1/%d of %s: it took %d MiB, with the error %v", text, part, name, used, err)
				}
				tried[text] = tried[text] || err == nil
			}
		}
		if !tried[`size(json.encode(object.a)) > 0`] {
			t.Errorf("no part of %s has a text", name)
		}
	}
}

// firstPart returns the first nth of a value.
func firstPart(value any, n int) any {
	switch v := value.(type) {
	case string:
		return v[:len(v)/n]
	case []any:
		return v[:len(v)/n]
	}
	part, all := map[string]any{}, value.(map[string]any)
	for _, key := range sortedKeys(all)[:len(all)/n] {
		part[key] = all[key]
	}
	return part
}

// An operator must not fail on large objects whose users did nothing odd.
func TestUsualExpressionsOnLargeObjectsSucceed(t *testing.T) {
	container := map[string]any{"name": "web", "image": "example.com/web:1.2.3", "env": slices.Repeat([]any{map[string]any{"name": "A", "value": "b"}}, 20)}
	object := map[string]any{
		"containers": slices.Repeat([]any{container}, 200), "names": slices.Repeat([]any{"some-name"}, 5000), "text": strings.Repeat("x", 1<<20),
		"labels": map[string]any{"app": "web"}, "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "copy": slices.Repeat([]any{container}, 200),
	}
	for _, text := range []string{
		`object.containers.all(c, c.image.startsWith("example.com/") && c.env.all(e, e.name in ["A", "B"]))`,
		`object.containers == object.copy`,
		`object.names.all(n, n.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))`,
		`object.names.slice(0, 500).all(n, n.matches(object.pattern))`,
		`object.names.sort()[0] == "some-name" && object.names.map(n, n + "-x").size() == 5000`,
		`object.text.size() > 3 && object.text.contains("xx") && "app" in object.labels`,
		`object.containers.map(c, {"name": c.name, "image": c.image}).size() == 200 && object.containers.all(c, c.image.split(":").size() == 2)`,
	} {
		if _, _, err := evaluate(t.Context(), t, text, object); err != nil {
			t.Errorf("%s: got the error %v", text, err)
		}
	}
}

// The deadline of a review ends an evaluation, also inside of loops that it does not leave.
func TestTheEndOfTheContextEndsAnEvaluation(t *testing.T) {
	items := map[string]any{"a": slices.Repeat([]any{int64(1)}, 400)}
	for _, text := range []string{
		`object.a.all(x, object.a.all(y, x == y))`,
		`[1].all(x, object.a.all(y, object.a.all(z, y == z)))`,
		`object.a.all(x, x in object.a && x in object.a && x in object.a)`,
	} {
		reason := errors.New("the API server has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		if _, _, err := evaluate(ctx, t, text, items); !errors.Is(err, reason) {
			t.Errorf("%s: got the error %v", text, err)
		}
	}
}

// slowList is a list whose items take a second each.
type slowList struct{ traits.Lister }

type slowIterator struct{ traits.Iterator }

func (l slowList) Iterator() traits.Iterator { return slowIterator{l.Lister.Iterator()} }

func (i slowIterator) Next() ref.Val {
	time.Sleep(time.Second)
	return i.Iterator.Next()
}

func TestAnEvaluationHasATimeLimit(t *testing.T) {
	const text = `object.a.all(x, [x].all(y, y in object.b))`
	list := slices.Repeat([]any{int64(1)}, 1000)
	template, err := env(t).Template(map[string]any{"a": "${" + text + "}"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		object := map[string]any{"a": slowList{types.DefaultTypeAdapter.NativeToValue(list[:100]).(traits.Lister)}, "b": list}
		_, _, err := evaluate(t.Context(), t, text, object)
		_, rendered := template.Render(t.Context(), map[string]any{"object": object})
		if !errors.Is(err, errTime) || !errors.Is(rendered, errTime) {
			t.Errorf("got the errors %v, %v", err, rendered)
		}
	})
}
