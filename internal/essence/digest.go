package essence

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

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
	var u Undigester
	return u.Undigest(old, now)
}

// Undigester is [Undigest] for several essences and the same present one, whose digest it
// computes at most once. The zero value is ready for use. It is safe for concurrent use.
type Undigester struct {
	once   sync.Once
	digest map[string]any // of the present essence; nil means that it has none
}

// Undigest returns the essence behind a digest; see the function. now must be the same in
// all calls.
func (u *Undigester) Undigest(old, now map[string]any) map[string]any {
	if !IsDigest(old) {
		return old
	}
	u.once.Do(func() { u.digest, _ = Digest(now) }) // an essence that cannot be encoded matches no digest
	if u.digest != nil && u.digest[digestKey] == old[digestKey] {
		return now
	}
	return map[string]any{}
}
