package process

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"gopf.dev/gopf/storage"
)

var keyText = base32.StdEncoding.WithPadding(base32.NoPadding)

// changeDigits is the length of the part of a key that identifies the reason and the
// change. Keys of earlier versions consist of this part only.
const changeDigits = 16

// key identifies the handling by the object, the reason and the change. It is the same
// after a crash before the first record was stored, even if the object was written to
// meanwhile.
func (v *view) key() string {
	generation, _ := v.body.Lookup("metadata", "generation")
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%v\n", v.body.UID, v.cause.Reason, generation)
	for _, essence := range []map[string]any{v.cause.Old, v.cause.New} {
		text, _ := storage.EncodeEssence(essence) // it was decoded from JSON, so it cannot fail
		fmt.Fprintln(h, text)
	}
	return keyOwner(v.body.UID) + keyText.EncodeToString(h.Sum(nil)[:10])
}

// keyOwner returns the part of a key that identifies the object.
func keyOwner(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return keyText.EncodeToString(sum[:5])
}

// ownKey reports whether a key from the handling note may be used for the object. Any
// client that may edit the object can forge the note, and handlers pass the key to other
// systems: it must be neither an arbitrary text nor the key of another object.
func ownKey(key, uid string) bool {
	if _, err := keyText.DecodeString(key); err != nil {
		return false
	}
	owner := keyOwner(uid)
	return len(key) == changeDigits || len(key) == len(owner)+changeDigits && strings.HasPrefix(key, owner)
}
