package process

import (
	"crypto/sha256"
	"encoding/base32"

	"gopf.dev/gopf/internal/cause"
)

// key tells one handling from all others: by the object, the reason, and the
// version at which it began. A crash before anything was written begins it
// again at the same version, with the same key.
func key(uid string, reason cause.Reason, version string) string {
	sum := sha256.Sum256([]byte(uid + "\n" + string(reason) + "\n" + version))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10])
}
