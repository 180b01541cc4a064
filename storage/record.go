package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Record is the stored progress of one handler or sub-handler for one object, while a
// change is being handled. Times have a resolution of one microsecond.
type Record struct {
	// Started is the time of the first selection, which may be before the first call.
	// It is zero only in records of other tools.
	Started time.Time
	// Stopped is the time of the final success or failure. Zero means not yet.
	Stopped time.Time
	// Delayed is the earliest time of the next call. Zero means immediately.
	Delayed time.Time
	// Delay is the length of the delay that ends at Delayed. A process whose clock differs
	// from that of the writer waits no longer than this after it has read the record. 0
	// means unknown, as in records of Kopf, which ignores this field.
	Delay time.Duration
	// Purpose is the reason of the call: create, update, delete or resume. It is empty in
	// records of other tools, which then match every reason.
	Purpose string
	// Retries is the number of attempts made so far.
	Retries int
	// Success reports that the handler succeeded.
	Success bool
	// Failure reports that the handler failed finally and will not be retried.
	Failure bool
	// Message is the text of the last error, possibly empty. nil means no error.
	Message *string
	// Subrefs are the ids of all sub-handlers ever seen, on all levels, sorted.
	Subrefs []string
}

// Finished reports whether the handler succeeded or failed finally.
func (r Record) Finished() bool {
	return r.Success || r.Failure
}

// Equal reports whether both records are encoded in the same way.
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

// delay returns the encoded length of the delay: in seconds, plus the number of attempts
// after which it was requested. When Kopf merges its records into the status, it keeps
// this unknown key. The numbers of attempts then differ, which shows that the delay is
// outdated. It returns "" without a delay.
func (r Record) delay() string {
	d := r.Delay.Truncate(time.Microsecond)
	if d <= 0 || r.Delayed.IsZero() {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "/" + strconv.Itoa(r.Retries)
}

// parseDelay parses the length of the delay. Everything except the output of
// [Record.delay] for this number of attempts counts as unknown.
func parseDelay(text string, retries int) time.Duration {
	length, attempts, _ := strings.Cut(text, "/")
	seconds, err := strconv.ParseFloat(length, 64)
	if err != nil || attempts != strconv.Itoa(retries) || !(seconds > 0) || seconds > maxDelay.Seconds() {
		return 0
	}
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}

// maxDelay is the longest delay that is accepted: a century.
const maxDelay = 100 * 365 * 24 * time.Hour

// Encode returns the record as JSON, with the fields in Kopf's order. Absent fields are
// omitted, or written as null if verbose is true.
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
			b, _ = appendList(b, value) // only strings, so there is no error
		}
	}
	return string(append(b, '}'))
}

// Fields returns the record as a JSON object with all fields. Absent fields are nil, which
// deletes their former values in a merge patch.
func (r Record) Fields() map[string]any {
	fields := make(map[string]any, 10)
	for _, field := range r.fields() {
		if field.name == delayKey && field.value == nil {
			continue // an earlier one is recognized as outdated
		}
		fields[field.name] = field.value
	}
	return fields
}

// MarshalJSON implements json.Marshaler by [Record.Encode] without nulls.
func (r Record) MarshalJSON() ([]byte, error) {
	return []byte(r.Encode(false)), nil
}

// UnmarshalJSON implements json.Unmarshaler. Fields may be absent or null, and unknown
// fields are ignored, so records of any origin are accepted.
func (r *Record) UnmarshalJSON(text []byte) error {
	if err := jsonvalue.Check(text, jsonvalue.MaxStored); err != nil {
		return err
	}
	var wire wireRecord
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	read, err := wire.record()
	if err == nil {
		*r = read
	}
	return err
}

// maxRetries limits the number of attempts that is read. Delays between attempts are derived
// from it: after a negative number, and after one that overflows, there would be none.
const maxRetries = 1 << 30

// maxSubrefs limits the sub-handlers that are read. An object has no space for the records
// of so many.
const maxSubrefs = 1 << 14

// delayKey is the only key that Kopf does not know.
const delayKey = "delay"

type field struct {
	name  string
	value any // nil, string, bool, int64, or []any of strings
}

// fields returns the fields in the order in which they are encoded.
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

// errHidden means that a compressed message is written with escapes. The operator measures
// compressed texts before it decodes them, so it must find them in the text of the object.
var errHidden = errors.New("the compressed message has escapes")

// decodeRecord decodes a record from JSON. found is false for null.
func decodeRecord(text []byte) (record Record, found bool, err error) {
	if bytes.Equal(bytes.Trim(text, " \t\r\n"), []byte("null")) {
		return Record{}, false, nil
	}
	if err := record.UnmarshalJSON(text); err != nil {
		return Record{}, false, err
	}
	if m := record.Message; m != nil && strings.HasPrefix(*m, "gz:H4sI") && !bytes.Contains(text, []byte(*m)) {
		return Record{}, false, errHidden
	}
	return record, true, nil
}

// recordOf returns the record in a decoded JSON value. found is false for null.
func recordOf(value any) (record Record, found bool, err error) {
	if fields, ok := value.(map[string]any); ok {
		var wire wireRecord
		if wire.readFields(fields) {
			record, err = wire.record()
			return record, err == nil, err
		}
	}
	text, err := jsonvalue.Encode(value)
	if err != nil {
		return Record{}, false, err
	}
	return decodeRecord(text)
}
