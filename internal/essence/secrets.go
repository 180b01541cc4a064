package essence

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
)

// digested is the prefix of digests of values of a Secret. Values are base64 and cannot
// have it. Digests are either "hmac-sha256:<digest>", salted with the object's uid, or
// "hmac-sha256:<key id>:<digest>", made with the user's key.
const digested = "hmac-sha256:"

// Secrets hides the values of one Secret in its essences. A digest shows whether a value
// has changed, but not the value. Equal values of different objects have different
// digests.
type Secrets struct {
	// Key is the key of the digests. If it is empty, digests are salted with the uid
	// only: a client that can read a digest can then verify guesses.
	Key []byte
	// UID is the uid of the object.
	UID string
}

// Hide replaces the values in the essence of the current object with digests, in place.
func (s Secrets) Hide(essence map[string]any) {
	dropApplied(essence)
	s.hideValues(essence)
}

func (s Secrets) hideValues(of map[string]any) {
	eachValue(of, func(values map[string]any, key string) { values[key] = s.digest(values[key], s.Key) })
}

// Hidden returns a copy of a manifest with digests of the values in place of the values.
func (s Secrets) Hidden(manifest map[string]any) map[string]any {
	hidden := maps.Clone(manifest)
	for _, field := range secretFields {
		if values, ok := hidden[field].(map[string]any); ok {
			hidden[field] = maps.Clone(values)
		}
	}
	s.hideValues(hidden)
	return hidden
}

// HidePlain replaces plain values in a stored essence with digests, in place, and
// reports whether it found any. Kopf stores plain values. It also stores kubectl's copy of the
// Secret if a handler is declared for the annotations.
func (s Secrets) HidePlain(stored map[string]any) (found bool) {
	found = dropApplied(stored)
	eachValue(stored, func(values map[string]any, key string) {
		if text, ok := values[key].(string); !ok || !strings.HasPrefix(text, digested) {
			values[key], found = s.digest(values[key], s.Key), true
		}
	})
	return found
}

// Renew makes a stored essence comparable with the current one. plain has the current
// values in plain text. Renew returns a copy in which digests that were made without a
// key, or with another one, are replaced with digests of the current key. If there are
// none, it returns stored itself.
//
// A digest without a key can be compared with the current value. A digest with an
// unknown key cannot: it counts as unchanged, because a new key must not trigger
// handlers.
func (s Secrets) Renew(stored, plain map[string]any) map[string]any {
	foreign := false
	eachValue(stored, func(values map[string]any, key string) {
		text, _ := values[key].(string)
		foreign = foreign || s.keyOf(text) != s.keyID()
	})
	if !foreign {
		return stored
	}
	renewed := jsonvalue.Clone(stored).(map[string]any)
	for _, field := range secretFields {
		values, _ := renewed[field].(map[string]any)
		now, _ := plain[field].(map[string]any)
		for key := range values {
			text, _ := values[key].(string)
			value, present := now[key]
			of := s.keyOf(text)
			if !present || of == s.keyID() || of == "" && text != s.digest(value, nil) {
				continue // the value was removed or changed, or the digest has the current key
			}
			values[key] = s.digest(value, s.Key)
		}
	}
	return renewed
}

// dropApplied removes kubectl's copy of a Secret, which has plain values, and reports whether
// there was one. An essence has it if a handler is declared for the annotations.
func dropApplied(essence map[string]any) bool {
	value, _ := jsonvalue.Lookup(essence, "metadata", "annotations")
	annotations, _ := value.(map[string]any)
	if _, found := annotations[lastApplied]; !found {
		return false
	}
	delete(annotations, lastApplied)
	storage.Tidy(essence)
	return true
}

// secretFields are the fields of a Secret that contain its values.
var secretFields = [...]string{"data", "stringData"}

// eachValue calls fn for each value of a Secret. fn may replace it.
func eachValue(essence map[string]any, fn func(values map[string]any, key string)) {
	for _, field := range secretFields {
		values, _ := essence[field].(map[string]any)
		for key := range values {
			fn(values, key)
		}
	}
}

// digest returns the digest of a value with the key, or with the uid if key is empty.
func (s Secrets) digest(value any, key []byte) string {
	raw, _ := json.Marshal(value) // cannot fail: the value was decoded from JSON
	if len(key) == 0 {
		return digested + sum([]byte(s.UID), raw)
	}
	return digested + idOf(key) + ":" + sum(key, append([]byte(s.UID+"\n"), raw...))
}

func sum(key, text []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// keyID returns an id of the key that does not reveal it. It is empty without a key.
func (s Secrets) keyID() string {
	if len(s.Key) == 0 {
		return ""
	}
	return idOf(s.Key)
}

func idOf(key []byte) string { return sum(key, []byte("gopf.dev/key-id"))[:8] }

// keyOf returns the id of the key of a digest. It is empty for a digest without a key.
func (s Secrets) keyOf(digest string) string {
	id, _, keyed := strings.Cut(strings.TrimPrefix(digest, digested), ":")
	if !keyed {
		return ""
	}
	return id
}

// The words that handlers and logs see instead of digests.
const (
	hiddenValue  = "hidden"
	changedValue = "changed"
)

// Mask returns copies of two essences of a Secret for handlers and logs, with words
// instead of digests. A value that differs is "changed" in the new essence, or in the
// only one that has it. All others are "hidden". Either essence may be nil.
func Mask(old, new map[string]any) (maskedOld, maskedNew map[string]any) {
	maskedOld, maskedNew = copyOf(old), copyOf(new)
	for _, field := range secretFields {
		before, _ := maskedOld[field].(map[string]any)
		now, _ := maskedNew[field].(map[string]any)
		for key, was := range before {
			is, stays := now[key]
			before[key] = hiddenValue
			switch {
			case !stays:
				before[key] = changedValue
			case diff.Equal(is, was):
				now[key] = hiddenValue
			default:
				now[key] = changedValue
			}
		}
		for key := range now {
			if _, known := before[key]; !known {
				now[key] = changedValue
			}
		}
	}
	return maskedOld, maskedNew
}

func copyOf(essence map[string]any) map[string]any {
	if essence == nil {
		return nil
	}
	return jsonvalue.Clone(essence).(map[string]any)
}
