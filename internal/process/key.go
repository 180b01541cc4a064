package process

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"

	"gopf.dev/gopf/storage"
)

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
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:10])
}
