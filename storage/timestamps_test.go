package storage_test

import (
	"testing"
	"time"

	"gopf.dev/gopf/storage"
)

func TestTimestampsAreParsedInManyForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-01-02T03:04:05.000006+00:00": "2026-01-02T03:04:05.000006+00:00",
		"2026-01-02T03:04:05":              "2026-01-02T03:04:05.000000+00:00",
		"2026-01-02T03:04:05Z":             "2026-01-02T03:04:05.000000+00:00",
		"2026-01-02 03:04:05,5Z":           "2026-01-02T03:04:05.500000+00:00",
		"2026-01-02T03:04:05.999999999Z":   "2026-01-02T03:04:05.999999+00:00",
		"2026-01-02T05:34:05+02:30":        "2026-01-02T03:04:05.000000+00:00",
		"2026-01-02T05:04:05+0200":         "2026-01-02T03:04:05.000000+00:00",
		"2026-01-01T22:04:05-05":           "2026-01-02T03:04:05.000000+00:00",
		"20260102T030405Z":                 "2026-01-02T03:04:05.000000+00:00",
		"2026-01-02T03:04":                 "2026-01-02T03:04:00.000000+00:00",
		"2026-01-02T03":                    "2026-01-02T03:00:00.000000+00:00",
		"2026-01-02":                       "2026-01-02T00:00:00.000000+00:00",
		"20260102":                         "2026-01-02T00:00:00.000000+00:00",
		"2026-01":                          "2026-01-01T00:00:00.000000+00:00",
		"2026-1-2T03:04:5Z":                "2026-01-02T03:04:05.000000+00:00",
		"2026-1":                           "2026-01-01T00:00:00.000000+00:00",
		"2026":                             "2026-01-01T00:00:00.000000+00:00",
	} {
		parsed, err := storage.ParseTime(text)
		if err != nil {
			t.Errorf("ParseTime(%q): %v", text, err)
		} else if got := storage.FormatTime(parsed); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestInvalidTimestampsAreErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "now", "202601", "2026-13-01", "2026-02-30", "2026-01-02T24:00:00", "2026-01-02T03:60:00", "2026-01-02T03:04:61",
		"2026-01-02T03:04:05 Z", "2026-01-02T", "2026-01-02Z", "2026-01-02T03:04:05Zulu", "x2026-01-02",
	} {
		if parsed, err := storage.ParseTime(text); err == nil {
			t.Errorf("ParseTime(%q): got %v, want an error", text, parsed)
		}
	}
}

func TestTimestampsAreFormattedInUTC(t *testing.T) {
	t.Parallel()
	local := time.Date(2026, 1, 2, 5, 4, 5, 123456789, time.FixedZone("", 7200))
	if got, want := storage.FormatTime(local), "2026-01-02T03:04:05.123456+00:00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
