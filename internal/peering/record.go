package peering

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/storage"
)

// Record is the entry of one operator in a peering object.
type Record struct {
	Identity string
	Priority int           // the operator with the highest one works; may be negative
	Lifetime time.Duration // how long it counts after LastSeen; written in whole seconds, rounded up
	LastSeen time.Time     // written with microseconds
}

// defaultLifetime applies to records without a lifetime.
const defaultLifetime = 60 * time.Second

// Deadline returns when the record expires unless it is renewed.
func (r Record) Deadline() time.Time { return r.LastSeen.Add(r.Lifetime) }

// Dead reports whether the record has expired.
func (r Record) Dead(now time.Time) bool { return !r.Deadline().After(now) }

// Value returns the record for the status. It is nil, which removes the record, if the
// lifetime is not positive.
func (r Record) Value() any {
	if r.Lifetime <= 0 {
		return nil
	}
	return map[string]any{"priority": r.Priority, "lifetime": r.seconds(), "lastseen": formatTime(r.LastSeen)}
}

// String returns the record as Kopf logs it.
func (r Record) String() string {
	return fmt.Sprintf("<Peer %s: priority=%d, lifetime=%d, lastseen='%s'>", r.Identity, r.Priority, r.seconds(), formatTime(r.LastSeen))
}

// seconds returns the lifetime as it is written. It is rounded up: if a record expired
// earlier than its owner assumes, two operators could work.
func (r Record) seconds() int64 {
	return int64(math.Ceil(r.Lifetime.Seconds()))
}

// formatTime omits zero microseconds.
func formatTime(t time.Time) string {
	return strings.Replace(storage.FormatTime(t), ".000000", "", 1)
}

// Parse returns the records of a status, sorted by identity, and the errors of invalid
// ones by identity.
func Parse(status map[string]any, now time.Time) (records []Record, unreadable map[string]error) {
	for _, identity := range slices.Sorted(maps.Keys(status)) {
		r, err := parse(identity, status[identity], now)
		if err != nil {
			if unreadable == nil {
				unreadable = map[string]error{}
			}
			unreadable[identity] = err
			continue
		}
		records = append(records, r)
	}
	return records, unreadable
}

func parse(identity string, value any, now time.Time) (Record, error) {
	r := Record{Identity: identity, Lifetime: defaultLifetime, LastSeen: now}
	fields, ok := value.(map[string]any)
	if !ok {
		return r, fmt.Errorf("a record must be an object, not %T", value)
	}
	if v := fields["priority"]; v != nil {
		n, err := number(v)
		if err != nil {
			return r, fmt.Errorf("priority: %w", err)
		}
		r.Priority = int(n)
	}
	if v := fields["lifetime"]; v != nil {
		n, err := number(v)
		if err != nil {
			return r, fmt.Errorf("lifetime: %w", err)
		}
		r.Lifetime = time.Duration(max(-maxSeconds, min(n, maxSeconds))) * time.Second
	}
	if v := fields["lastseen"]; v != nil {
		text, ok := v.(string)
		if !ok {
			return r, fmt.Errorf("lastseen must be a string, not %T", v)
		}
		at, err := storage.ParseTime(text)
		if err != nil {
			return r, fmt.Errorf("lastseen: %w", err)
		}
		r.LastSeen = at
	}
	return r, nil
}

// maxSeconds is the longest lifetime that fits into a Duration, about 292 years.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// number parses an integer in any form that Python's int() accepts from JSON: fractions
// are cut off, strings of digits are valid.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= math.MaxInt64 {
			return 0, fmt.Errorf("%v is out of range", v)
		}
		return int64(v), nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return 0, fmt.Errorf("%v is not a number", v)
		}
		return number(f)
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not an integer", v)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%v is not an integer", v)
}
