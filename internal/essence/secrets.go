package essence

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// digested begins the digest of a value of a secret.
const digested = "hmac-sha256:"

// HideSecrets replaces the values in an essence of a Secret by digests, so that
// it tells which keys have changed, but not what they hold. The salt is the
// object's own, so that equal values of different objects look different.
//
// Values that are digests already stay. A base with plain values, from before they
// were hidden, gets the same treatment, so that hiding is not taken for a change.
func HideSecrets(essence map[string]any, salt string) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := essence[field].(map[string]any)
		for key, v := range values {
			if text, ok := v.(string); ok && strings.HasPrefix(text, digested) {
				continue
			}
			raw, err := json.Marshal(v)
			if err != nil {
				raw = nil // not JSON: it cannot be in an object
			}
			mac := hmac.New(sha256.New, []byte(salt))
			mac.Write(raw)
			values[key] = digested + hex.EncodeToString(mac.Sum(nil)[:16])
		}
	}
}
