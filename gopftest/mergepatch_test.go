package gopftest

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// randomJSON returns a random value. Few keys and values make patches hit their targets.
func randomJSON(r *rand.Rand, depth int) any {
	kinds := 9
	if depth == 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return int64(1<<62 + r.IntN(2))
	case 2:
		return 0.5
	case 3:
		return "<text>"
	case 4:
		return true
	case 5:
		items := make([]any, r.IntN(3))
		for i := range items {
			items[i] = randomJSON(r, depth-1)
		}
		return items
	}
	return randomFields(r, depth)
}

func randomFields(r *rand.Rand, depth int) map[string]any {
	fields := map[string]any{}
	for range r.IntN(4) {
		fields[string(rune('a'+r.IntN(4)))] = randomJSON(r, depth-1)
	}
	return fields
}

// The real API server applies merge patches with this library.
func TestMergePatchesApplyAsInTheRealAPIServer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for range 20_000 {
		doc, patch := randomFields(r, 4), randomFields(r, 4)
		before, patchText := encode(doc), encode(patch)
		text, err := jsonpatch.MergePatch(before, patchText)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := utiljson.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got := mergePatched(doc, patch)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s patched with %s: got %s, want %s", before, patchText, encode(got), text)
		}
		if string(encode(doc)) != string(before) || string(encode(patch)) != string(patchText) {
			t.Fatalf("%s patched with %s: the arguments changed to %s and %s", before, patchText, encode(doc), encode(patch))
		}
		if !json.Valid(text) || string(text) != string(before) {
			changed++
		}
	}
	if changed < 10_000 {
		t.Errorf("only %d patches had an effect", changed)
	}
}
