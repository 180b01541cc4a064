package storage

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// timeLayout is the format of timestamps: always in UTC, always with microseconds, and
// never with a Z.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// FormatTime formats a timestamp as Kopf does, in UTC and truncated to microseconds.
func FormatTime(t time.Time) string {
	return t.UTC().Format(timeLayout)
}

// ParseTime parses an ISO 8601 timestamp in any of the forms that versions of Kopf and
// other tools write: with any offset or none, with a fraction of any length, compact, or
// cut after the year, month, day, hour or minute. Without an offset, it is in UTC. The
// result is in UTC, and truncated to microseconds.
func ParseTime(s string) (time.Time, error) {
	if t, err := time.Parse(timeLayout, s); err == nil {
		return inRange(t.UTC(), s)
	}
	m := timeForms.FindStringSubmatch(s)
	if m == nil || m[2] != "" && m[2][0] != '-' && m[3] == "" {
		// Six digits are ambiguous: a year and a month, or a date with a short year.
		return time.Time{}, fmt.Errorf("%q is not an ISO 8601 timestamp", s)
	}
	year, month, day := number(m[1], 1), number(m[2], 1), number(m[3], 1)
	hour, minute, second := number(m[4], 0), number(m[5], 0), number(m[6], 0)
	micros := number((m[7] + "000000")[:6], 0)
	t := time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)

	// time.Date normalizes values out of range instead of failing.
	if t.Month() != time.Month(month) || t.Day() != day || t.Hour() != hour || t.Minute() != minute || t.Second() != second {
		return time.Time{}, fmt.Errorf("%q is not a valid date and time", s)
	}
	offset := time.Duration(number(m[9], 0))*time.Hour + time.Duration(number(m[10], 0))*time.Minute
	if m[8] == "-" {
		offset = -offset
	}
	return inRange(t.Add(-offset), s)
}

// inRange returns an error for a time whose year in UTC has not four digits, because of the
// offset: FormatTime would write a timestamp that ParseTime cannot read.
func inRange(t time.Time, s string) (time.Time, error) {
	if year := t.Year(); year < 0 || year > 9999 {
		return time.Time{}, fmt.Errorf("%q is not within the years 0 to 9999 in UTC", s)
	}
	return t, nil
}

var timeForms = regexp.MustCompile(`^(\d{4})(?:(-\d{1,2}|\d{2})(?:(-\d{1,2}|\d{2})` + // the date
	`(?:[T ](\d{2})(?::?(\d{2})(?::?(\d{1,2})(?:[.,](\d+))?)?)?` + // the time
	`(?:Z|([-+])(\d{2})(?::?(\d{2}))?)?)?)?)?$`) // the offset

// number parses digits that have matched, with an optional dash in front. It returns
// otherwise if they are missing.
func number(digits string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(digits, "-")); err == nil {
		return n
	}
	return otherwise
}
