package storage

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// wireRecord is a record as it is stored. The names of the fields are those of the keys,
// except that keys begin with a small letter.
type wireRecord struct {
	Started, Stopped, Delayed *string
	Purpose                   string
	Retries                   int
	Success, Failure          bool
	Message                   *string
	Subrefs                   []string
	Delay                     any
}

// record checks the fields and returns the record.
func (w wireRecord) record() (Record, error) {
	if len(w.Subrefs) > maxSubrefs {
		return Record{}, fmt.Errorf("more than %d sub-handlers", maxSubrefs)
	}
	read := Record{
		Purpose: w.Purpose,
		Retries: min(max(0, w.Retries), maxRetries),
		Success: w.Success,
		Failure: w.Failure,
		Message: w.Message,
		Subrefs: w.Subrefs,
	}
	for _, moment := range []struct {
		name string
		text *string
		time *time.Time
	}{
		{"started", w.Started, &read.Started},
		{"stopped", w.Stopped, &read.Stopped},
		{"delayed", w.Delayed, &read.Delayed},
	} {
		if moment.text == nil {
			continue
		}
		var err error
		if *moment.time, err = ParseTime(*moment.text); err != nil {
			return Record{}, fmt.Errorf("%s: %w", moment.name, err)
		}
	}
	if text, ok := w.Delay.(string); ok && !read.Delayed.IsZero() {
		read.Delay = parseDelay(text, read.Retries)
	}
	return read, nil
}

// readFields reads a decoded record. It returns false if the record is not as operators
// write it, or has sub-handlers: then [Record.UnmarshalJSON] must read its JSON. Otherwise the
// result is the same, in a fraction of the time.
func (w *wireRecord) readFields(fields map[string]any) bool {
	for key, value := range fields {
		usual := false
		switch key {
		case "started":
			usual = readText(value, &w.Started)
		case "stopped":
			usual = readText(value, &w.Stopped)
		case "delayed":
			usual = readText(value, &w.Delayed)
		case "message":
			usual = readText(value, &w.Message) && (value == nil || !strings.HasPrefix(*w.Message, "gz:")) // the JSON of a compressed message is checked
		case "purpose":
			w.Purpose, usual = value.(string)
			usual = value == nil || usual && utf8.ValidString(w.Purpose)
		case "retries":
			var n int64
			n, usual = value.(int64)
			w.Retries = int(n)
		case "success":
			w.Success, usual = value.(bool)
		case "failure":
			w.Failure, usual = value.(bool)
		case "subrefs", delayKey:
			usual = value == nil
		}
		if !usual {
			return false
		}
	}
	return true
}

// readText reads a text or null. Only a text that is the same after it is encoded and decoded
// is usual.
func readText(value any, to **string) (usual bool) {
	if value == nil {
		return true
	}
	text, ok := value.(string)
	*to = &text
	return ok && utf8.ValidString(text)
}
