package essence

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/fieldpath"
)

// digested begins the digest of a value of a Secret. It cannot begin a value, which
// is base64. Digests are either "hmac-sha256:<digest>", salted with the object's uid,
// or "hmac-sha256:<key id>:<digest>", made with a key of the user's.
const digested = "hmac-sha256:"

// Secrets hides the values of one Secret in its essences. A digest shows whether a
// value has changed, but not what it is. Equal values of different objects have
// different digests.
type Secrets struct {
	// Key makes the digests. Without it, they are salted with the uid only: whoever
	// can read a digest can try guesses.
	Key []byte
	// UID is that of the object.
	UID string
}

// Hide replaces the values in the essence of the present object by digests. It
// changes the essence.
func (s Secrets) Hide(essence map[string]any) {
	eachValue(essence, func(values map[string]any, key string) { values[key] = s.digest(values[key], s.Key) })
}

// HidePlain replaces plain values in a stored essence by digests, and reports
// whether there were any: Kopf stores plain values. Digests stay. It changes the
// essence.
func (s Secrets) HidePlain(stored map[string]any) (found bool) {
	eachValue(stored, func(values map[string]any, key string) {
		if text, ok := values[key].(string); !ok || !strings.HasPrefix(text, digested) {
			values[key], found = s.digest(values[key], s.Key), true
		}
	})
	return found
}

// Renew makes a stored essence comparable with the present one, which has its values
// in plain. It returns a copy in which digests that were made without the key, or
// with another one, are made with the present key. It returns the essence itself if
// there are none.
//
// A value behind a digest without a key can be compared with the present one. A value
// behind a digest with an unknown key cannot: it counts as unchanged, because a new
// key must not call handlers.
func (s Secrets) Renew(stored, plain map[string]any) map[string]any {
	foreign := false
	eachValue(stored, func(values map[string]any, key string) {
		text, _ := values[key].(string)
		foreign = foreign || s.keyOf(text) != s.keyID()
	})
	if !foreign {
		return stored
	}
	renewed := fieldpath.Clone(stored).(map[string]any)
	for _, field := range secretFields {
		values, _ := renewed[field].(map[string]any)
		now, _ := plain[field].(map[string]any)
		for key := range values {
			text, _ := values[key].(string)
			value, present := now[key]
			of := s.keyOf(text)
			if !present || of == s.keyID() || of == "" && text != s.digest(value, nil) {
				continue // removed, or made with the present key, or changed
			}
			values[key] = s.digest(value, s.Key)
		}
	}
	return renewed
}

// secretFields are the fields of a Secret whose members are secret.
var secretFields = [...]string{"data", "stringData"}

func eachValue(essence map[string]any, fn func(values map[string]any, key string)) {
	for _, field := range secretFields {
		values, _ := essence[field].(map[string]any)
		for key := range values {
			fn(values, key)
		}
	}
}

func (s Secrets) digest(value any, key []byte) string {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = nil // not JSON: it cannot be in an object
	}
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

// keyID identifies the key without telling anything about it; "" without a key.
func (s Secrets) keyID() string {
	if len(s.Key) == 0 {
		return ""
	}
	return idOf(s.Key)
}

func idOf(key []byte) string { return sum(key, []byte("gopf.dev/key-id"))[:8] }

// keyOf returns the id of the key that made a digest; "" if none did.
func (s Secrets) keyOf(digest string) string {
	id, _, keyed := strings.Cut(strings.TrimPrefix(digest, digested), ":")
	if !keyed {
		return ""
	}
	return id
}

// What handlers and logs are shown instead of digests. Neither is base64, so that
// neither is taken for a value.
const (
	hiddenValue  = "hidden"
	changedValue = "changed"
)

// Mask returns two essences of a Secret for handlers and logs, with words instead of
// digests: what differs is "changed" in the new one, or in the only one that has it.
// All else is "hidden". The given essences stay as they are, and may be nil.
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
	return fieldpath.Clone(essence).(map[string]any)
}
