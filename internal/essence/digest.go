package essence

import (
	"crypto/sha256"
	"encoding/hex"

	"gopf.dev/gopf/storage"
)

// digestKey is the only key of an essence that stands for one too large to be
// kept.
const digestKey = "gopf.dev/digest"

// Digest stands for an essence that is too large to be kept: it tells whether
// another one is the same, but not what it was.
func Digest(essence map[string]any) (map[string]any, error) {
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text))
	return map[string]any{digestKey: hex.EncodeToString(sum[:])}, nil
}

// IsDigest reports whether an essence is a digest of one that was too large.
func IsDigest(essence map[string]any) bool {
	_, digested := essence[digestKey]
	return digested && len(essence) == 1
}

// Undigest replaces a digest by what can be said about the essence that it
// stands for: it is the one at hand, or an unknown one, which shows as empty.
// Other essences are returned as they are.
func Undigest(old, now map[string]any) map[string]any {
	if !IsDigest(old) {
		return old
	}
	if same, err := Digest(now); err == nil && same[digestKey] == old[digestKey] {
		return now
	}
	return map[string]any{}
}
