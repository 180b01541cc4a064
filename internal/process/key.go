package process

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"

	"gopf.dev/gopf/storage"
)

// key tells one handling from all others: by the object, the reason, and the
// change. It is the same after a crash before anything was recorded, whatever
// else was written to the object meanwhile.
func (v *view) key() string {
	generation, _ := v.body.Lookup("metadata", "generation")
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%v\n", v.body.UID, v.cause.Reason, generation)
	for _, essence := range []map[string]any{v.cause.Old, v.cause.New} {
		text, _ := storage.EncodeEssence(essence) // it came from JSON
		fmt.Fprintln(h, text)
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:10])
}
