package jsonvalue

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestTheWeightIsNearTheMemory(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","labels":{"a":"b"}},"data":{"a":"b"}}`,
		`{"data":{"a":"` + strings.Repeat("x", 10_000) + `"}}`,
		`{"list":[` + strings.Repeat(`{"a":1},`, 1000) + `1]}`,
		`{"list":[` + strings.Repeat(`"some text",`, 1000) + `1]}`,
		`{` + strings.Repeat(`"KEY":{},`, 1000) + `"z":1}`,
	} {
		for i := range 1000 {
			text = strings.Replace(text, "KEY", fmt.Sprint("key-", i), 1)
		}
		const n = 200
		all := make([]any, n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range all {
			if err := json.Unmarshal([]byte(text), &all[i]); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		used := int(after.HeapAlloc-before.HeapAlloc) / n
		if got := Weight(all[0]); got < used/4 || got > 3*used {
			t.Errorf("%.60s: %d bytes, but it takes %d", text, got, used)
		}
		runtime.KeepAlive(all)
	}
}

func TestTheLongestPath(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 0, `[1,[2]]`: 0, `{}`: 0, `{"":1}`: 0, `{"abc":1,"d":{"ef":1}}`: 3, `{"abc":1,"d":{"efg":[{"h":1}]}}`: 5, `[{"a":1},{"bc":1}]`: 2,
	} {
		v, err := Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := LongestPath(v); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}
