package essence

import (
	"crypto/sha256"
	"encoding/hex"

	"gopf.dev/gopf/storage"
)

// digestKey is the only key of a digest.
const digestKey = "gopf.dev/digest"

// Digest returns a small stand-in for an essence that is too large to store. It can be
// compared with an essence, but does not contain its values.
func Digest(essence map[string]any) (map[string]any, error) {
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text))
	return map[string]any{digestKey: hex.EncodeToString(sum[:])}, nil
}

// IsDigest reports whether an essence is a result of [Digest].
func IsDigest(essence map[string]any) bool {
	_, digested := essence[digestKey]
	return digested && len(essence) == 1
}

// Undigest returns the essence behind a digest: now, if the digest matches it, or else
// an empty essence, because the old values are unknown. If old is not a digest, Undigest
// returns old.
func Undigest(old, now map[string]any) map[string]any {
	if !IsDigest(old) {
		return old
	}
	if same, err := Digest(now); err == nil && same[digestKey] == old[digestKey] {
		return now
	}
	return map[string]any{}
}
