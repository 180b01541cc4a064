package peering

import (
	"encoding/json"
	"testing"
	"time"

	"gopf.dev/gopf/internal/jsonvalue"
)

// A record is parsed or reported as unreadable, and a parsed record can be written.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":null}`, `{"a":{"priority":"7","lifetime":1e300,"lastseen":"2026-01-01"}}`, `{"a":{"priority":-1.5,"lifetime":-5}}`, `{"a":{"lastseen":1}}`, `{"":{"lifetime":9223372036854775807}}`,
		`{"a":{"priority":1e999}}`, `{"a":{"lifetime":true}}`,
	} {
		f.Add([]byte(s))
	}
	now := time.Unix(1_700_000_000, 0)
	f.Fuzz(func(t *testing.T, text []byte) {
		status, err := jsonvalue.Object(text)
		if err != nil {
			return
		}
		records, unreadable := Parse(status, now)
		if len(records)+len(unreadable) != len(status) {
			t.Fatalf("%d records and %d errors of %d values", len(records), len(unreadable), len(status))
		}
		for _, r := range records {
			r.Dead(now)
			if _, err := json.Marshal(r.Value()); err != nil {
				t.Fatal(err)
			}
			_ = r.String()
		}
	})
}
