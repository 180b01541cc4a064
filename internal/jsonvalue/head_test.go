package jsonvalue

import (
	"bytes"
	"testing"
	"time"
)

func TestTheHeadOfALargeValueIsTheStartOfItsJSON(t *testing.T) {
	type part struct {
		Name    string            `json:"name"`
		Empty   []string          `json:"empty"`
		None    map[string]string `json:"none"`
		Zero    int               `json:"zero,omitempty"`
		Pointer *part             `json:"pointer"`
		Time    time.Time         `json:"time"`
		Wait    time.Duration     `json:"wait"`
		Bytes   []byte            `json:"bytes"`
		Other   any               `json:"other"`
		Array   [2]bool           `json:"array"`
	}
	one := part{Name: "<&>\u2028", Pointer: &part{}, Bytes: []byte("abc"), Wait: 5, Other: map[string]any{"b": 1.5, "a": []any{nil}}}
	list := make([]part, 1000)
	for i := range list {
		list[i] = one
	}
	whole, err := Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 5000, 50_000} {
		start, ok := Head(list, limit)
		if !ok || len(start) < limit || len(start) > limit+32<<10 || !bytes.HasPrefix(whole, start) {
			t.Errorf("%d bytes: got %d, %v: %.300s\nwant %.300s", limit, len(start), ok, start, whole)
		}
	}
	if _, ok := Head(one, 10_000); ok {
		t.Error("short JSON has a start")
	}
	if _, ok := Head([]any{list, make(chan int)}, len(whole)+100_000); ok {
		t.Error("a value without JSON has a start")
	}
}
