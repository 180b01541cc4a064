package apply

import (
	"math/rand/v2"
	"testing"

	"gopf.dev/gopf/internal/object"
)

// value returns one of few random values, so that equal ones are frequent.
func value(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n < 3 && depth > 0:
		fields := map[string]any{}
		for range r.IntN(3) {
			fields[string(rune('a'+r.IntN(3)))] = value(r, depth-1)
		}
		return fields
	case n < 4:
		return nil
	case n < 5:
		return []any{"x"}
	case n < 6:
		return int64(1)
	}
	return "x"
}

func TestKeptAgreesWithMissing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	kepts := 0
	for range 20_000 {
		fields := map[string]any{"spec": value(r, 3), "status": value(r, 1)}
		body, err := object.FromMap(map[string]any{"metadata": map[string]any{"name": "x"}, "spec": value(r, 3), "status": value(r, 1)})
		if err != nil {
			t.Fatal(err)
		}
		left := missing(fields, body)
		if kept(fields, body) != (len(left) == 0) {
			t.Fatalf("the patch %v of %s: kept disagrees with missing: %v", fields, body.Raw(), left)
		}
		if len(left) == 0 {
			kepts++
		}
	}
	if kepts < 500 {
		t.Errorf("only %d of the patches were kept, which is too few for a meaningful test", kepts)
	}
}
