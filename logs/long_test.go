package logs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"testing"
)

type item struct {
	Name  string            `json:"name"`
	Flags [4]bool           `json:"flags"`
	More  map[string]string `json:"more,omitempty"`
	Next  *item             `json:"next"`
}

// Handlers log parts of objects, and clients of the cluster choose how large these are.
func TestTheStartOfALargeValueIsLogged(t *testing.T) {
	items := make([]item, 50_000)
	for i := range items {
		items[i] = item{Name: "<ü>", More: map[string]string{"b": "1", "a": "2"}}
	}
	many := map[string]any{}
	for _, key := range []string{"b", "a", "c"} {
		many[key] = items
	}
	for name, value := range map[string]any{"a list": items, "a pointer": &items, "a map": many, "a struct": struct{ Items []item }{items}} {
		whole := marshal(value)
		for _, format := range []Format{Plain, JSON} {
			var out bytes.Buffer
			log := slog.New(New(&out, Options{Format: format}))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			log.Info("Seen.", "value", value)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
				t.Errorf("%s, %s: %d KiB for a line of %d bytes", name, format, n>>10, out.Len())
			}
			text := strings.TrimSuffix(strings.TrimPrefix(out.String(), "Seen. value="), "\n")
			if format == JSON {
				var line struct{ Value string }
				if err := json.Unmarshal(out.Bytes(), &line); err != nil {
					t.Fatal(err)
				}
				text = line.Value
			}
			if start, cut := strings.CutSuffix(text, "…"); !cut || len(start) < longestText-10 || !bytes.HasPrefix(whole, []byte(start)) {
				t.Errorf("%s, %s: the text has %d bytes and begins with %.200q, want %.200q", name, format, len(text), text, whole)
			}
		}
	}
}

// Some values are large, but have short JSON or none.
func TestLargeValuesWithShortJSONAreLoggedAsBefore(t *testing.T) {
	type hidden struct {
		Text string `json:"-"`
		Name string `json:"name"`
	}
	for _, value := range []any{
		hidden{strings.Repeat("x", 2*manyParts), "a"},
		struct{ F func() }{},
		[]any{strings.Repeat("x", 2*manyParts), make(chan int)},
	} {
		want := marshal(value)
		if got := jsonOf(slog.AnyValue(value)); !bytes.Equal(got, want) {
			t.Errorf("got %.100s, want %.100s", got, want)
		}
	}
}
