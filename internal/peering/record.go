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

// Record is what one operator has said about itself in a peering object.
type Record struct {
	Identity string
	Priority int           // the highest one works; may be negative
	Lifetime time.Duration // for how long it counts after LastSeen; written in whole seconds, rounded up
	LastSeen time.Time     // written to the microsecond
}

// defaultLifetime is that of records that do not say it.
const defaultLifetime = 60 * time.Second

// Deadline is when the record's owner is taken for dead unless it renews it.
func (r Record) Deadline() time.Time { return r.LastSeen.Add(r.Lifetime) }

// Dead tells whether the record counts no more.
func (r Record) Dead(now time.Time) bool { return !r.Deadline().After(now) }

// Value is what stands in the status under the identity: null, which removes
// the record, if it has no lifetime.
func (r Record) Value() any {
	if r.Lifetime <= 0 {
		return nil
	}
	return map[string]any{"priority": r.Priority, "lifetime": r.seconds(), "lastseen": formatTime(r.LastSeen)}
}

// String is how logs show the record, as those of Kopf do.
func (r Record) String() string {
	return fmt.Sprintf("<Peer %s: priority=%d, lifetime=%d, lastseen='%s'>", r.Identity, r.Priority, r.seconds(), formatTime(r.LastSeen))
}

// seconds is the lifetime as it is written. It is rounded up: a record that
// dies before its owner thinks so would let two operators work.
func (r Record) seconds() int64 {
	return int64(math.Ceil(r.Lifetime.Seconds()))
}

// formatTime leaves out the microseconds if there are none.
func formatTime(t time.Time) string {
	return strings.Replace(storage.FormatTime(t), ".000000", "", 1)
}

// Parse reads the records of a status, sorted by their identities. Whatever is
// no record is left out and told in the errors, by its identity.
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
			return r, fmt.Errorf("the priority: %w", err)
		}
		r.Priority = int(n)
	}
	if v := fields["lifetime"]; v != nil {
		n, err := number(v)
		if err != nil {
			return r, fmt.Errorf("the lifetime: %w", err)
		}
		r.Lifetime = time.Duration(max(-maxSeconds, min(n, maxSeconds))) * time.Second
	}
	if v := fields["lastseen"]; v != nil {
		text, ok := v.(string)
		if !ok {
			return r, fmt.Errorf("the time it was last seen must be a text, not %T", v)
		}
		at, err := storage.ParseTime(text)
		if err != nil {
			return r, fmt.Errorf("the time it was last seen: %w", err)
		}
		r.LastSeen = at
	}
	return r, nil
}

// maxSeconds is the longest lifetime that fits a Duration, near 300 years.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// number reads an integer in any of the forms that Python's int() takes from
// JSON: fractions are cut off, texts of digits are fine.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= math.MaxInt64 {
			return 0, fmt.Errorf("%v is no number that can be counted with", v)
		}
		return int64(v), nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return 0, fmt.Errorf("%v is no number", v)
		}
		return number(f)
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no integer", v)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%v is no integer", v)
}
