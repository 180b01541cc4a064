package progress

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
)

// HandlingID is the id under which [Handling] is stored, beside the records of
// handlers. Kopf knows no handler of that name and leaves it alone.
const HandlingID = "gopf.handling"

// Handling is what is remembered of the handling of one change that takes
// several turns, beside the records of its handlers.
type Handling struct {
	// Key tells this handling from all others.
	Key string
	// Seen is the essence in the turn in which the first handler finished. If
	// the object is another one in the end, there is a change that this handler
	// has not seen. Nil before that.
	Seen map[string]any
}

// storedHandling is a handling as it is written, into the message of a record.
type storedHandling struct {
	Key  string         `json:"key"`
	Seen map[string]any `json:"seen"`
}

// largest is how long the message may be: there is not much room on an object,
// and others need it, too.
const largest = 32 << 10

const compressed = "gz:" // begins a message that is base64 of gzip

// EncodeHandling makes a record of a handling, bound to the reason and to the
// beginning of its handlers' records.
func EncodeHandling(h Handling, reason cause.Reason, started time.Time) (storage.Record, error) {
	raw, err := json.Marshal(storedHandling(h))
	if err != nil {
		return storage.Record{}, fmt.Errorf("encode the handling: %w", err)
	}
	message := string(raw)
	if len(raw) > 1024 {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(raw) // into memory
		_ = w.Close()
		message = compressed + base64.StdEncoding.EncodeToString(b.Bytes())
	}
	if len(message) > largest { // then only whether it has changed is remembered
		digest, err := essence.Digest(h.Seen)
		if err != nil {
			return storage.Record{}, fmt.Errorf("digest the handling: %w", err)
		}
		return EncodeHandling(Handling{h.Key, digest}, reason, started)
	}
	return storage.Record{Started: started, Purpose: string(reason), Message: &message}, nil
}

// DecodeHandling reads a handling from its record. It is not found if the
// record belongs to another handling, which somebody else has finished.
func DecodeHandling(r storage.Record, reason cause.Reason, started time.Time) (h Handling, found bool) {
	if r.Message == nil || r.Purpose != string(reason) || !r.Started.Truncate(time.Microsecond).Equal(started.Truncate(time.Microsecond)) {
		return Handling{}, false
	}
	raw := []byte(*r.Message)
	if text, ok := strings.CutPrefix(*r.Message, compressed); ok {
		z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
		if err != nil {
			return Handling{}, false
		}
		if raw, err = io.ReadAll(z); err != nil {
			return Handling{}, false
		}
	}
	fields, err := jsonvalue.Object(raw) // which keeps all digits of numbers
	key, ok := fields["key"].(string)
	if err != nil || !ok {
		return Handling{}, false
	}
	seen, _ := fields["seen"].(map[string]any)
	return Handling{Key: key, Seen: seen}, true
}

// Started is when the handling of the handlers began; zero if none has.
func (s *State) Started(ids []string) time.Time {
	var first time.Time
	for _, id := range ids {
		if at := s.entries[id].now.Started; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Stored tells whether any of the handlers was selected in an earlier turn
// already.
func (s *State) Stored(ids []string) bool {
	for _, id := range ids {
		e := s.entries[id]
		if e.renamed || e.isStored && e.now.Purpose == e.stored.Purpose && e.now.Started.Equal(e.stored.Started) {
			return true
		}
	}
	return false
}
