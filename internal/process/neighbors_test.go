package process

import (
	"hash/maphash"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/jsonvalue"
)

func TestOwnersNamesTheLastWriterFirst(t *testing.T) {
	entry := func(manager, fields string, minute int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const ours, finalizer = `{"f:metadata":{"f:annotations":{"f:a.example.com/last-handled-configuration":{}}}}`, `{"f:metadata":{"f:finalizers":{"v:\"a.example.com/x\"":{}}}}`
	entries := []metav1.ManagedFieldsEntry{
		entry("kubectl", `{"f:spec":{}}`, 9), entry("first", ours, 1), entry("last", ours, 5), entry("middle", finalizer, 3), entry("first", finalizer, 2),
		entry("other", `{"f:metadata":{"f:annotations":{"f:a.example.community/x":{}}}}`, 7),
		entry("status", `{"f:status":{".":{},"f:key":{"f:progress":{}}}}`, 4), entry("spec", `{"f:spec":{"f:key":{}}}`, 8), entry("else", `{"f:status":{"f:keys":{}}}`, 8), {Manager: "none"},
	}
	if got := owners(entries, []string{"a.example.com"}, []string{"key"}, []string{"a.example.com/x"}); !slices.Equal(got, []string{"last", "status", "middle", "first"}) {
		t.Errorf("got %q", got)
	}
	for i := range 1000 { // forged
		entries = append(entries, entry(strconv.Itoa(i), ours, 6))
	}
	if got := owners(entries, []string{"a.example.com"}, nil, nil); len(got) != mostOwners {
		t.Errorf("%d of 1,000 forged managers are named", len(got))
	}
}

func TestAnotherWriterIsReportedOnceAfterADelay(t *testing.T) {
	n, start := &Notices{}, time.Now()
	for i, c := range []struct {
		after time.Duration
		warn  bool
	}{{0, false}, {time.Minute, false}, {62 * time.Minute, false}, {63 * time.Minute, false}, {64 * time.Minute, true}, {65 * time.Minute, false}} {
		if got := n.suspect(start.Add(c.after)); got != c.warn {
			t.Errorf("%d: got %v", i, got)
		}
	}
}

func TestHashesOfValuesDependOnTheContentAlone(t *testing.T) {
	seed := maphash.MakeSeed()
	decode := func(text string) any {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		return value
	}
	if a, b := valueHash(seed, decode(`{"a": 1, "b": [true, null]}`)), valueHash(seed, decode(`{"b": [true, null], "a": 1}`)); a != b {
		t.Error("the order of keys changes the hash")
	}
	texts := []string{`{}`, `[]`, `""`, `null`, `true`, `false`, `0`, `1`, `"1"`, `{"a": 1}`, `{"a": "1"}`, `{"b": 1}`, `{"a": {"b": 1}}`, `{"a": {}, "b": 1}`,
		`[1, 2]`, `[2, 1]`, `[[1], 2]`, `[1, [2]]`, `{"a": null}`, `[null]`, `[{}]`, `[[]]`}
	seen := map[uint64]string{}
	for _, text := range texts {
		hash := valueHash(seed, decode(text))
		if other, exists := seen[hash]; exists {
			t.Errorf("%s and %s have the same hash", text, other)
		}
		seen[hash] = text
	}
}
