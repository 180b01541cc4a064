package storage_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

// A readable essence does not change when it is written and read again.
func FuzzEssence(f *testing.F) {
	for _, s := range []string{
		``, `null`, `{}`, `[]`, `{"spec":{"a":[1,1.5,1e300,1e-7,null,true,"ж😀\u0000"]},"metadata":{"labels":{"a":"b"},"annotations":{}}}`,
		`{"a":9223372036854775808,"b":-0,"c":1e20,"d":123456789012345678901234567890}`, `{"a":1e999}`, `{"a":` + "\n" + `1} `, `{"a":1}{`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		essence, found, err := storage.DecodeEssence(text)
		if err != nil || !found {
			return
		}
		again, err := storage.EncodeEssence(essence)
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := storage.DecodeEssence(again)
		if err != nil || !diff.Equal(essence, second) {
			t.Fatalf("%s became %s: %v %v", text, again, err, diff.Of(essence, second))
		}
	})
}

// A record is readable or malformed. A readable one does not change when it is written.
func FuzzRecord(f *testing.F) {
	for _, s := range []string{
		``, `null`, `{}`, `{"started":"2026-01-01T00:00:00.000001+00:00","retries":3,"success":true,"message":"x","subrefs":["a"],"delayed":"2026-01-01","delay":"1.5/3"}`,
		`{"started":1}`, `{"delay":"Inf/0","delayed":"2026"}`, `{"delay":{"a":[[]]}}`, `{"retries":1e99}`, `{"STARTED":"2026"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		records, err := storage.NewAnnotationProgress("x.dev").Load(t.Context(), annotation("fn", text), []string{"fn"})
		var malformed *storage.MalformedError
		if err != nil && !errors.As(err, &malformed) {
			t.Fatal(err)
		}
		r, found := records["fn"]
		if !found {
			return
		}
		var again storage.Record
		if err := json.Unmarshal([]byte(r.Encode(false)), &again); err != nil || !again.Equal(r) {
			t.Fatalf("%s became %s: %v", text, r.Encode(false), err)
		}
	})
}

// A record in the status is read as its JSON is read, also if it is read without encoding it.
func FuzzRecordInTheStatus(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"started":"2026-01-01T00:00:00.000001+00:00","stopped":null,"retries":3,"success":true,"failure":false,"message":"x","purpose":"create","subrefs":null}`,
		`{"started":1}`, `{"started":"soon"}`, `{"retries":1.5}`, `{"retries":-7,"STARTED":"2026"}`, `{"subrefs":["a"],"delayed":"2026-01-01","delay":"1.5/3"}`, `{"message":"\ud800"}`, `[]`, `null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil || strings.Contains(text, "gz:") { // compressed messages have more rules
			return
		}
		records, err := storage.NewStatusProgress("x").Load(t.Context(), progressInStatus("fn", value), []string{"fn"})
		got, found := records["fn"]
		encoded, encodeErr := jsonvalue.Encode(value)
		if encodeErr != nil {
			return
		}
		var want storage.Record
		wantErr := json.Unmarshal(encoded, &want)
		if value == nil {
			if found || err != nil {
				t.Fatalf("null is read as %v: %v", got, err)
			}
			return
		}
		if found != (wantErr == nil) || (err == nil) != (wantErr == nil) || found && !got.Equal(want) {
			t.Fatalf("%s is read as %s: %v; its JSON is read as %s: %v", text, got.Encode(false), err, want.Encode(false), wantErr)
		}
	})
}

// A compressed base is readable or malformed.
func FuzzCompressedBase(f *testing.F) {
	for _, s := range []string{``, `x`, `H4sIAAAAAAAC/6quBQQAAP//Q7+mowIAAAA=`, `H4sIAAAAAAAC/6quBQQ`, "H4sI\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, err := storage.NewAnnotationBase("x.dev").Load(t.Context(), annotation("last-handled-configuration-gz", text))
		var malformed *storage.MalformedError
		if err != nil && !errors.As(err, &malformed) {
			t.Fatal(err)
		}
		o := storagetest.Body{"status": map[string]any{"x": map[string]any{"last-handled-configuration": text}}}
		if _, _, err = storage.NewStatusBase("x").Load(t.Context(), o); err != nil && !errors.As(err, &malformed) {
			t.Fatal(err)
		}
	})
}

// A readable timestamp does not change when it is written and read again, if its year has
// four digits.
func FuzzTime(f *testing.F) {
	for _, s := range []string{``, `2026`, `2026-01-01T00:00:00.000001+00:00`, `20260101T000000Z`, `0000-01-01T00:00:00+23:59`, `9999-12-31T23:59:59.9999999-23:59`, `2026-02-30`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := storage.ParseTime(text)
		if err != nil || at.Year() < 0 || at.Year() > 9999 {
			return
		}
		again, err := storage.ParseTime(storage.FormatTime(at))
		if err != nil || !again.Equal(at.Truncate(time.Microsecond)) {
			t.Fatalf("%q is %v, and again %v, error %v", text, at, again, err)
		}
	})
}
