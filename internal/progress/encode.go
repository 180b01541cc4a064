package progress

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
)

// noteVersion is the version of the format that is written. Notes of version 1
// have no number; notes of other versions count as absent.
const noteVersion = 2

// storedNote is the stored form of a note: JSON in the message of a record.
type storedNote struct {
	Version  int                       `json:"v,omitempty"`
	Key      string                    `json:"key,omitempty"`
	Base     string                    `json:"base,omitempty"`
	Essences []json.RawMessage         `json:"essences,omitempty"`
	Saw      map[string]storedSighting `json:"saw,omitempty"`
	Todo     []storedTodo              `json:"todo,omitempty"`

	// Seen belongs to version 1: the essence that the finished handlers saw.
	Seen json.RawMessage `json:"seen,omitempty"`
}

type storedSighting struct {
	Essence int    `json:"essence"`
	Stopped string `json:"stopped,omitempty"`
}

type storedTodo struct {
	Handler string          `json:"handler"`
	Patch   json.RawMessage `json:"patch"`
}

const (
	// largestNote limits the stored text in bytes: other clients need the limited
	// space for annotations as well.
	largestNote = 32 << 10
	// compressed is the prefix of gzipped and base64-encoded text.
	compressed = "gz:"
)

// ErrNoteTooLarge means that the unsent changes do not fit into the note.
var ErrNoteTooLarge = errors.New("the unsent changes do not fit into the handling note")

// BaseID returns a hash that identifies a base. It is empty if base is nil.
func BaseID(base map[string]any) string {
	if base == nil {
		return ""
	}
	text, err := storage.EncodeEssence(base)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Encode encodes the note as a record. Essences that do not fit become digests. The
// error is [ErrNoteTooLarge] if even that does not help.
func (n *Note) Encode() (storage.Record, error) {
	if len(n.Todo) > maxTodo {
		return storage.Record{}, fmt.Errorf("encode the handling note: %w", ErrNoteTooLarge)
	}
	message, err := n.text()
	var limit *jsonvalue.LimitError
	if large := errors.As(err, &limit); large || err == nil && len(message) > largestNote {
		message, err = n.digested().text()
		if large = errors.As(err, &limit); large || err == nil && len(message) > largestNote {
			err = ErrNoteTooLarge
		}
	}
	if err != nil {
		return storage.Record{}, fmt.Errorf("encode the handling note: %w", err)
	}
	return storage.Record{Started: n.Started, Purpose: string(n.Reason), Message: &message}, nil
}

// digested returns a copy of the note with digests in place of essences.
func (n *Note) digested() *Note {
	c := n.Clone()
	for i, e := range c.essences {
		if digest, err := essence.Digest(e); err == nil && !essence.IsDigest(e) {
			c.essences[i] = digest
		}
	}
	return c
}

// text encodes the note as JSON, which is compressed if it is longer than 1 KiB.
func (n *Note) text() (string, error) {
	stored := storedNote{Version: noteVersion, Key: n.Key, Base: n.Base, Saw: map[string]storedSighting{}}
	places := map[int]int{} // only referenced essences are written
	for _, id := range slices.Sorted(maps.Keys(n.saw)) {
		s := n.saw[id]
		if _, ok := places[s.essence]; !ok {
			text, err := storage.EncodeEssence(n.essences[s.essence])
			if err != nil {
				return "", err
			}
			places[s.essence] = len(stored.Essences)
			stored.Essences = append(stored.Essences, json.RawMessage(text))
		}
		stopped := ""
		if !s.stopped.IsZero() {
			stopped = storage.FormatTime(s.stopped)
		}
		stored.Saw[id] = storedSighting{places[s.essence], stopped}
	}
	for _, t := range n.Todo {
		raw, err := json.Marshal(t.Patch)
		if err != nil {
			return "", err
		}
		stored.Todo = append(stored.Todo, storedTodo{t.Handler, raw})
	}
	raw, err := json.Marshal(stored)
	if err == nil {
		err = jsonvalue.Check(raw, jsonvalue.MaxStored)
	}
	if err != nil || len(raw) <= 1024 {
		return string(raw), err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw) // writing to memory cannot fail
	_ = w.Close()
	return compressed + base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// DecodeNote decodes a note from its record. If the record is malformed, it returns an
// empty note and a [*storage.MalformedError]. For a note of an unknown version it
// returns an empty note. records has the stored records of the handlers. The key of
// the note is used only if one of them started at the same time as the note: otherwise
// the note belongs to another handling.
func DecodeNote(r storage.Record, records map[string]storage.Record) (*Note, error) {
	empty := &Note{Reason: cause.Reason(r.Purpose)}
	if r.Message == nil {
		return empty, nil
	}
	malformed := func(err error) (*Note, error) {
		return empty, &storage.MalformedError{Where: "the handling note", IDs: []string{HandlingID}, Err: err}
	}
	raw, err := unpack(*r.Message)
	if err != nil {
		return malformed(err)
	}
	var stored storedNote
	if err := json.Unmarshal(raw, &stored); err != nil {
		return malformed(err)
	}
	n := &Note{Reason: empty.Reason, Base: stored.Base}
	for _, record := range records {
		if record.Purpose == r.Purpose && sameMoment(record.Started, r.Started) {
			n.Key, n.Started = stored.Key, r.Started
		}
	}
	switch stored.Version {
	case 0:
		n.decodeFirst(stored, records)
	case noteVersion:
		if err := n.decode(stored); err != nil {
			return malformed(err)
		}
	default:
		return empty, nil
	}
	return n, nil
}

// decode reads the contents of a note of the current version.
func (n *Note) decode(stored storedNote) error {
	if len(stored.Essences) > maxEssences || len(stored.Saw) > maxSightings || len(stored.Todo) > maxTodo {
		return fmt.Errorf("more than %d essences, %d handlers or %d unsent changes", maxEssences, maxSightings, maxTodo)
	}
	n.saw = make(map[string]sighting, len(stored.Saw))
	for _, raw := range stored.Essences {
		e, found, err := storage.DecodeEssence(string(raw))
		if err != nil || !found {
			return errors.Join(err, errors.New("an essence is not an object"))
		}
		n.essences = append(n.essences, e)
	}
	for id, s := range stored.Saw {
		var stopped time.Time
		if s.Stopped != "" {
			var err error
			if stopped, err = storage.ParseTime(s.Stopped); err != nil {
				return err
			}
		}
		if s.Essence < 0 || s.Essence >= len(n.essences) {
			return errors.New("an essence is missing")
		}
		n.saw[id] = sighting{s.Essence, stopped}
	}
	for _, t := range stored.Todo {
		v, err := jsonvalue.Decode(t.Patch)
		fields, ok := v.(map[string]any)
		if err != nil || !ok {
			return errors.Join(err, errors.New("a patch is not an object"))
		}
		n.Todo = append(n.Todo, Todo{t.Handler, fields})
	}
	return nil
}

// decodeFirst decodes a note of version 1, which has one essence for all finished
// handlers.
func (n *Note) decodeFirst(stored storedNote, records map[string]storage.Record) {
	seen, found, err := storage.DecodeEssence(string(stored.Seen))
	if n.Started.IsZero() || err != nil || !found {
		return
	}
	for id, r := range records {
		if r.Finished() && r.Purpose == string(n.Reason) {
			n.Saw(id, seen, r.Stopped)
		}
	}
}

// unpack returns the JSON of a note. It fails if the JSON exceeds [jsonvalue.MaxStored].
func unpack(message string) ([]byte, error) {
	raw := []byte(message)
	if text, packed := strings.CutPrefix(message, compressed); packed {
		var err error
		if raw, err = jsonvalue.Unpack(text, jsonvalue.MaxStored); err != nil {
			return nil, err
		}
	}
	return raw, jsonvalue.Check(raw, jsonvalue.MaxStored)
}
