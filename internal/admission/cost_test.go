package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// keys returns a JSON object with n keys.
func keys(prefix string, n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%s%x":%s`, prefix, i, value)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// below returns a JSON object with the value below so many keys.
func below(value string, levels int) string {
	return strings.Repeat(`{"k":`, levels) + value + strings.Repeat("}", levels)
}

func TestPunctuationInStringsCostsNothing(t *testing.T) {
	for text, want := range map[string]counts{
		``:                          {},
		`null`:                      {},
		`{}`:                        {objects: 1},
		`[{},{"a":[1,2]}]`:          {objects: 2, members: 1, others: 4},
		`{"{{[,:":"{{[,:"}`:         {objects: 1, members: 1},
		`"\"{"`:                     {},
		`{"a\\":{"b":"\\\"{"}}`:     {objects: 2, members: 2},
		`["\\\\",{}]`:               {objects: 1, others: 2},
		`["","{",{},"}"]`:           {objects: 1, others: 4},
		`{"a":"\u0022,{"}`:          {objects: 1, members: 1},
		`{"open":"{{{{`:             {objects: 1, members: 1},
		`{"open":"{{\`:              {objects: 1, members: 1},
		`{"open":"{{\"`:             {objects: 1, members: 1},
		strings.Repeat(`\"`, 3):     {},
		`{}"` + `{` + `"` + `{,:[{`: {objects: 3, members: 1, others: 2},
	} {
		got := count([]byte(text))
		if got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		if found := decoded(text); found.objects > got.objects || found.members > got.members || found.others > got.others {
			t.Errorf("%s: the decoder found %+v, more than %+v", text, found, got)
		}
	}
	text, objects := `"`+strings.Repeat("{", 1_000_000)+`"`, strings.Repeat("{", 1_000_000)
	if got := cost([]byte(text)); got > smallCost {
		t.Errorf("a text of a megabyte costs %d", got)
	}
	if got := cost([]byte(objects)); got < 400_000_000 {
		t.Errorf("a million objects cost %d", got)
	}
}

// decoded counts what a decoder finds in a text before the first error.
func decoded(text string) (n counts) {
	d := jsontext.NewDecoder(bytes.NewReader([]byte(text)), jsontext.AllowDuplicateNames(true))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return n
		}
		switch kind, length := d.StackIndex(d.StackDepth()); {
		case token.Kind() == '{':
			n.objects++
		case token.Kind() == '[':
			n.others++
		case kind == '{' && length%2 == 0 && token.Kind() != '}' && token.Kind() != ']':
			n.members++
		}
	}
}

// The objects of a review count as the Go type of the handler, too.
func TestTheCostOfAReviewIncludesTheGoType(t *testing.T) {
	type large struct {
		Spec struct {
			Items []struct{ Filler [500]int } `json:"items"`
		} `json:"spec"`
	}
	typed := calling("typed", handler.Admission{}, nil)
	typed.Type = reflect.TypeFor[*large]()
	all := newTable(handler.Set{typed, calling("untyped", handler.Admission{}, nil)}, []kind.Info{examples})
	object := func(n int) json.RawMessage {
		return json.RawMessage(`{"metadata":{"name":"x"},"spec":{"items":[` + strings.Repeat("{},", n) + `{}]}}`)
	}
	for _, c := range []struct {
		id          string
		old, new    int
		least, most int64
	}{
		{"typed", 0, 0, 0, smallTyped},
		{"typed", 1, 1000, 4_000_000, 3 * 4_100_000},
		{"typed", 1000, 1, 4_000_000, 3 * 4_100_000},
		{"typed", 1000, 1000, 8_000_000, 6 * 4_100_000},
		{"untyped", 1000, 1000, 0, 0},
		{"", 1000, 1000, 8_000_000, 6 * 4_100_000},
	} {
		raw, err := json.Marshal(reviewOf("UPDATE", map[string]any{"object": object(c.new), "oldObject": object(c.old)}))
		if err != nil {
			t.Fatal(err)
		}
		if got := all.memory(c.id, raw); got < c.least || got > c.most {
			t.Errorf("%q with %d and %d items: %d bytes, want %d to %d", c.id, c.old, c.new, got, c.least, c.most)
		}
	}
}

// While its handler runs, a review takes at most the memory that was reserved for it. Not
// parallel, because it measures the memory of the process.
func TestTheCostOfAReviewIsNotTooLow(t *testing.T) {
	for name, specs := range map[string][2]string{
		"a creation with keys":              {"", keys("k", 20_000, "0")},
		"a creation with objects":           {"", "[" + strings.Repeat(`{"a":1},`, 20_000) + "{}]"},
		"a creation with lists":             {"", "[" + strings.Repeat(`[],`, 50_000) + "[]]"},
		"a creation with texts":             {"", "[" + strings.Repeat(`"ab",`, 50_000) + "0]"},
		"a creation with floats":            {"", "[" + strings.Repeat(`1.5,`, 50_000) + "0]"},
		"an update of nothing":              {keys("k", 20_000, "0"), keys("k", 20_000, "0")},
		"an update of all values":           {keys("k", 20_000, "0"), keys("k", 20_000, "1")},
		"an update of all keys":             {keys("a", 20_000, "0"), keys("b", 20_000, "0")},
		"an update of all keys of a level":  {below(keys("a", 20_000, "0"), 14), below(keys("b", 20_000, "0"), 14)},
		"an update of deep keys":            {below(keys("a", 20_000, "0"), 60), below(keys("b", 20_000, "0"), 60)},
		"an update of objects with one key": {keys("k", 10_000, `{"a":1}`), keys("k", 10_000, `{"b":1}`)},
		"an update of texts":                {keys("k", 10_000, `"ab"`), keys("k", 10_000, `"cd"`)},
	} {
		t.Run(name, func(t *testing.T) {
			request := map[string]any{"object": json.RawMessage(`{"metadata":{"name":"x"},"spec":` + specs[1] + `}`)}
			operation := "CREATE"
			if specs[0] != "" {
				operation, request["oldObject"] = "UPDATE", json.RawMessage(`{"metadata":{"name":"x"},"spec":`+specs[0]+`}`)
			}
			raw, err := json.Marshal(reviewOf(operation, request))
			if err != nil {
				t.Fatal(err)
			}
			var before, during runtime.MemStats
			v := newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
				found := r.Review.Diff()
				runtime.GC()
				runtime.ReadMemStats(&during)
				runtime.KeepAlive(found)
				return nil
			}))
			runtime.GC()
			runtime.ReadMemStats(&before)
			out := httptest.NewRecorder()
			v.ServeHTTP(out, httptest.NewRequest(http.MethodPost, "/v", bytes.NewReader(raw)))
			if during.HeapAlloc == 0 {
				t.Fatalf("the handler was not called: %.300s", out.Body)
			}
			took, allocated := int64(during.HeapAlloc)-int64(before.HeapAlloc), during.TotalAlloc-before.TotalAlloc
			t.Logf("%d bytes: reserved %d KB, took %d KB, allocated %d KB", len(raw), cost(raw)>>10, took>>10, allocated>>10)
			if took > cost(raw) {
				t.Errorf("it took %d KB, but only %d KB were reserved", took>>10, cost(raw)>>10)
			}
		})
	}
}
