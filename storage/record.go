package storage

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Record is what is remembered about one handler of one object, or about one of
// its sub-handlers, while a change is being handled. Moments are kept to the
// microsecond.
type Record struct {
	// Started is when the handler was selected for the first time, which may be
	// before it was called. It is zero only in records of other origin.
	Started time.Time
	// Stopped is when the handler succeeded or failed for good; zero before that.
	Stopped time.Time
	// Delayed is when the handler may be called again at the earliest; zero if
	// at once.
	Delayed time.Time
	// Delay is the length of the delay that ends at Delayed, to the microsecond. A
	// process whose clock differs from that of the writer waits no longer than this
	// after it has read the record. 0 means unknown, as in records of Kopf, which
	// ignores it.
	Delay time.Duration
	// Purpose is the reason why the handler runs: create, update, delete or
	// resume. It is empty in records of other origin: those suit every reason.
	Purpose string
	// Retries is how many attempts were made.
	Retries int
	// Success says that the handler is done.
	Success bool
	// Failure says that the handler was given up.
	Failure bool
	// Message is the text of the last error, possibly empty; nil if there was none.
	Message *string
	// Subrefs are the ids of all sub-handlers ever seen, on all levels below, sorted.
	Subrefs []string
}

// Finished tells whether the handler is not to be called any more.
func (r Record) Finished() bool {
	return r.Success || r.Failure
}

// Equal tells whether both are written in the same way.
func (r Record) Equal(other Record) bool {
	return sameTime(r.Started, other.Started) &&
		sameTime(r.Stopped, other.Stopped) &&
		sameTime(r.Delayed, other.Delayed) &&
		r.delay() == other.delay() &&
		r.Purpose == other.Purpose &&
		r.Retries == other.Retries &&
		r.Success == other.Success &&
		r.Failure == other.Failure &&
		(r.Message == nil) == (other.Message == nil) &&
		(r.Message == nil || *r.Message == *other.Message) &&
		slices.Equal(r.Subrefs, other.Subrefs)
}

func sameTime(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

// delay returns the length of the delay as it is written: in seconds, with the
// number of attempts after which it was asked for. Kopf leaves the key as it is
// where it merges its records into the status: then the numbers differ, and the
// delay is known to be outdated. It returns "" if there is none.
func (r Record) delay() string {
	d := r.Delay.Truncate(time.Microsecond)
	if d <= 0 || r.Delayed.IsZero() {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "/" + strconv.Itoa(r.Retries)
}

// parseDelay reads the length of the delay. Anything but what [Record.delay]
// writes for so many attempts counts as unknown.
func parseDelay(text string, retries int) time.Duration {
	length, attempts, _ := strings.Cut(text, "/")
	seconds, err := strconv.ParseFloat(length, 64)
	if err != nil || attempts != strconv.Itoa(retries) || !(seconds > 0) || seconds > maxDelay.Seconds() {
		return 0
	}
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}

// maxDelay is the longest delay that is read: a century.
const maxDelay = 100 * 365 * 24 * time.Hour

// Encode writes the record as Kopf does, in its order of fields. What is not
// there is omitted, or written as null if verbose.
func (r Record) Encode(verbose bool) string {
	b := []byte{'{'}
	for _, field := range r.fields() {
		if field.value == nil && (!verbose || field.name == delayKey) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendString(b, field.name), ':')
		switch value := field.value.(type) {
		case nil:
			b = append(b, "null"...)
		case string:
			b = appendString(b, value)
		case bool:
			b = strconv.AppendBool(b, value)
		case int64:
			b = strconv.AppendInt(b, value, 10)
		case []any:
			b, _ = appendList(b, value) // strings only: nothing to go wrong
		}
	}
	return string(append(b, '}'))
}

// Fields returns the record as a JSON object with all fields, those that are not
// there as nulls: in a merge patch these delete what was there before.
func (r Record) Fields() map[string]any {
	fields := make(map[string]any, 10)
	for _, field := range r.fields() {
		if field.name == delayKey && field.value == nil {
			continue // what is left of an earlier one is known to be outdated
		}
		fields[field.name] = field.value
	}
	return fields
}

// MarshalJSON is [Record.Encode] without nulls, for storages that write JSON by
// the means of the standard library.
func (r Record) MarshalJSON() ([]byte, error) {
	return []byte(r.Encode(false)), nil
}

// UnmarshalJSON reads a record, whoever has written it: fields may be absent or
// null, unknown ones are ignored.
func (r *Record) UnmarshalJSON(text []byte) error {
	if err := jsonvalue.Check(text, jsonvalue.MaxStored); err != nil {
		return err
	}
	var wire struct {
		Started, Stopped, Delayed *string
		Purpose                   string
		Retries                   int
		Success, Failure          bool
		Message                   *string
		Subrefs                   []string
		Delay                     any
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	if len(wire.Subrefs) > maxSubrefs {
		return fmt.Errorf("it has more than %d sub-handlers", maxSubrefs)
	}
	read := Record{
		Purpose: wire.Purpose,
		Retries: wire.Retries,
		Success: wire.Success,
		Failure: wire.Failure,
		Message: wire.Message,
		Subrefs: wire.Subrefs,
	}
	for _, moment := range []struct {
		name string
		text *string
		time *time.Time
	}{
		{"started", wire.Started, &read.Started},
		{"stopped", wire.Stopped, &read.Stopped},
		{"delayed", wire.Delayed, &read.Delayed},
	} {
		if moment.text == nil {
			continue
		}
		var err error
		if *moment.time, err = ParseTime(*moment.text); err != nil {
			return fmt.Errorf("%s: %w", moment.name, err)
		}
	}
	if text, ok := wire.Delay.(string); ok && !read.Delayed.IsZero() {
		read.Delay = parseDelay(text, read.Retries)
	}
	*r = read
	return nil
}

// maxSubrefs is the number of sub-handlers that are read. An object has no space for
// the records of so many.
const maxSubrefs = 1 << 14

// delayKey is the only key that Kopf does not know.
const delayKey = "delay"

type field struct {
	name  string
	value any // nil, string, bool, int64, or []any of strings
}

// fields lists the record in the order in which it is written.
func (r Record) fields() [10]field {
	moment := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return FormatTime(t)
	}
	fields := [10]field{
		{"started", moment(r.Started)},
		{"stopped", moment(r.Stopped)},
		{"delayed", moment(r.Delayed)},
		{"purpose", nil},
		{"retries", int64(r.Retries)},
		{"success", r.Success},
		{"failure", r.Failure},
		{"message", nil},
		{"subrefs", nil},
		{delayKey, nil},
	}
	if r.Purpose != "" {
		fields[3].value = r.Purpose
	}
	if r.Message != nil {
		fields[7].value = *r.Message
	}
	if len(r.Subrefs) > 0 {
		subrefs := make([]any, len(r.Subrefs))
		for i, id := range r.Subrefs {
			subrefs[i] = id
		}
		fields[8].value = subrefs
	}
	if delay := r.delay(); delay != "" {
		fields[9].value = delay
	}
	return fields
}

// decodeRecord reads a record from JSON; null is none.
func decodeRecord(text []byte) (record Record, found bool, err error) {
	var read *Record
	if err := json.Unmarshal(text, &read); err != nil || read == nil {
		return Record{}, false, err
	}
	return *read, true, nil
}
