package process_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

// Random numbers, as a server may encode them, pass through all code between reading
// an object and writing it.
func TestNoNumberChangesItsValue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 13))
		list := make([]string, 1+random.IntN(4))
		for i := range list {
			list[i] = numeral(random)
		}
		text := fmt.Sprintf(`{"n":%s,"deep":{"n":%s},"list":[%s,{"n":%s}]}`, list[0], numeral(random), list[len(list)-1], numeral(random))
		raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"X","metadata":{"name":"x","uid":"u"},"spec":%s,"status":{"a":%s}}`, text, text)
		checkNumbers(t, seed, raw, text)
		if t.Failed() {
			return
		}
	}
}

func checkNumbers(t *testing.T, seed uint64, raw []byte, text string) {
	t.Helper()
	body, err := object.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	same := func(where string, spec any) {
		t.Helper()
		if got, err := json.Marshal(spec); err != nil || !exact(t, text, string(got)) {
			t.Errorf("seed %d: %s: %s became %s, error %v", seed, where, text, got, err)
		}
	}
	spec, _ := body.Lookup("spec")
	same("the object", spec)
	now := essence.Of(body, nil)
	same("the essence", now["spec"])

	for name, base := range map[string]storage.Base{"annotation": storage.NewAnnotationBase("x.dev"), "status": storage.NewStatusBase("x")} {
		kept := storagetest.Body(body.Map())
		p := storagetest.Patch{}
		if err := base.Save(t.Context(), kept, p, now); err != nil {
			t.Fatal(err)
		}
		old, found, err := base.Load(t.Context(), kept.Apply(p))
		if err != nil || !found || len(diff.Of(old, now)) > 0 || !diff.Equal(old, now) {
			t.Errorf("seed %d: the base in the %s: found %v, error %v, %s", seed, name, found, err, diff.Of(old, now))
		}
		same("the base in the "+name, old["spec"])
	}

	note := &progress.Note{Key: "k", Reason: cause.Update, Started: time.Unix(1, 0)}
	note.Saw("fn", now, time.Time{})
	record, err := note.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := progress.DecodeNote(record, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := decoded.Earlier("fn")
	if !diff.Equal(seen, now) {
		t.Errorf("seed %d: the note: %s", seed, diff.Of(seen, now))
	}
	same("the note", seen["spec"])

	digest, err := essence.Digest(seen)
	if err != nil || !diff.Equal(essence.Undigest(digest, now), now) {
		t.Errorf("seed %d: the digest differs: error %v", seed, err)
	}
	result, err := execute.ToJSON(map[string]any{"spec": json.RawMessage(text)})
	if err != nil {
		t.Fatal(err)
	}
	same("the result", result.(map[string]any)["spec"])

	merge := patch.Between(map[string]any{}, map[string]any{"spec": spec})
	same("the merge patch", merge["spec"])
	for _, op := range patch.Ops(map[string]any{}, merge, func(string) bool { return false }) {
		same("the JSON patch", op.Value)
	}
	if again := patch.Between(merge, map[string]any{"spec": seen["spec"]}); len(again) > 0 {
		t.Errorf("seed %d: equal specs are patched: %v", seed, again)
	}
}

// exact reports whether two JSON texts are equal: integers must have the same digits,
// other numbers the same float64 value. It shares no code with the tested packages.
func exact(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	for text, into := range map[string]*any{a: &x, b: &y} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return a == b || cmp.Equal(x, y, cmp.Comparer(func(m, n json.Number) bool {
		f, _ := m.Float64()
		g, _ := n.Float64()
		return m == n || strings.ContainsAny(m.String(), ".eE") && f == g
	}))
}

// numeral returns a random JSON number.
func numeral(random *rand.Rand) string {
	switch random.IntN(6) {
	case 0:
		return fmt.Sprint(random.Int64N(200) - 100)
	case 1:
		return fmt.Sprint(1<<53 + random.Int64N(1000) - 500)
	case 2:
		return fmt.Sprint(random.Int64() - random.Int64())
	case 3: // around the limits of 64 bits
		limit := new(big.Int).Lsh(big.NewInt(1), uint(63+random.IntN(2)))
		limit.Add(limit, big.NewInt(random.Int64N(10)-5))
		if random.IntN(2) == 0 {
			limit.Neg(limit)
		}
		return limit.String()
	case 4:
		digits := []byte{byte('1' + random.IntN(9))}
		for range random.IntN(60) {
			digits = append(digits, byte('0'+random.IntN(10)))
		}
		return string(digits)
	}
	f := math.Float64frombits(random.Uint64())
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = random.Float64()
	}
	text, _ := json.Marshal(f)
	return string(text)
}
