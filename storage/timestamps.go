package storage

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// timeLayout is how timestamps are written: always in UTC, always with
// microseconds, and never with a Z.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// FormatTime writes a timestamp as Kopf does, in UTC and with microseconds; what
// is finer than that is cut off.
func FormatTime(t time.Time) string {
	return t.UTC().Format(timeLayout)
}

// ParseTime reads a timestamp of ISO 8601, in any of the forms that different
// versions of Kopf and other tools have left: with any or no offset, with a
// fraction of any length, compact, or cut after the year, month, day, hour or
// minute. Without an offset it is in UTC. What is finer than microseconds is
// cut off. The result is in UTC.
func ParseTime(s string) (time.Time, error) {
	if t, err := time.Parse(timeLayout, s); err == nil {
		return t.UTC(), nil
	}
	m := timeForms.FindStringSubmatch(s)
	if m == nil || m[2] != "" && m[2][0] != '-' && m[3] == "" {
		// Six digits in a row may be a year with a month or a date with a short year.
		return time.Time{}, fmt.Errorf("%q is not a timestamp of ISO 8601", s)
	}
	year, month, day := number(m[1], 1), number(m[2], 1), number(m[3], 1)
	hour, minute, second := number(m[4], 0), number(m[5], 0), number(m[6], 0)
	micros := number((m[7] + "000000")[:6], 0)
	t := time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)

	// Date carries what is out of range over to the next unit instead of failing.
	if t.Month() != time.Month(month) || t.Day() != day || t.Hour() != hour || t.Minute() != minute || t.Second() != second {
		return time.Time{}, fmt.Errorf("%q is not a moment that exists", s)
	}
	offset := time.Duration(number(m[9], 0))*time.Hour + time.Duration(number(m[10], 0))*time.Minute
	if m[8] == "-" {
		offset = -offset
	}
	return t.Add(-offset), nil
}

var timeForms = regexp.MustCompile(`^(\d{4})(?:(-\d{1,2}|\d{2})(?:(-\d{1,2}|\d{2})` + // the date
	`(?:[T ](\d{2})(?::?(\d{2})(?::?(\d{1,2})(?:[.,](\d+))?)?)?` + // the time
	`(?:Z|([-+])(\d{2})(?::?(\d{2}))?)?)?)?)?$`) // the offset

// number reads digits that have matched, maybe with a dash before them; missing
// ones are otherwise.
func number(digits string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(digits, "-")); err == nil {
		return n
	}
	return otherwise
}
