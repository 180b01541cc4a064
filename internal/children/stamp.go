package children

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"

	"gopf.dev/gopf/internal/jsonvalue"
)

// ManagedFields is an entry of metadata.managedFields, as far as stamps need it.
type ManagedFields struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Time        string          `json:"time"`
	Subresource string          `json:"subresource"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

// Stamp returns a hash of the entries of one manager: their fields and times. It changes
// if and only if another client has changed a field of that manager, or has written under
// its name. found is false if the manager has no entry.
func Stamp(entries []ManagedFields, manager string) (stamp uint32, found bool) {
	h := fnv.New32a()
	for _, e := range entries {
		if e.Manager != manager || e.Subresource != "" {
			continue
		}
		found = true
		for _, part := range []string{e.Operation, e.Time, string(e.FieldsV1)} {
			_, _ = h.Write([]byte(part)) // a hash never fails
			_, _ = h.Write([]byte{0})
		}
	}
	return h.Sum32(), found
}

// Digest returns a hash of the desired content of a child. Keys of objects are sorted in
// JSON, so equal contents have equal digests. Digests are stored: they must not change with
// the encoder, or an upgrade would apply all children again. The hash is that of the text
// of package json.
func Digest(fields map[string]any) (uint32, error) {
	raw, err := jsonvalue.Encode(fields)
	if err == nil && escaped(raw) {
		raw, err = json.Marshal(fields)
	}
	if err != nil {
		return 0, err
	}
	h := fnv.New32a()
	_, _ = h.Write(raw) // a hash never fails
	return h.Sum32(), nil
}

// escaped reports whether package json may encode the text in another way: it escapes
// characters of HTML, separators of lines, and invalid characters.
func escaped(text []byte) bool {
	return bytes.ContainsAny(text, "<>&") || bytes.Contains(text, []byte("\xe2\x80")) || bytes.Contains(text, []byte("\xef\xbf\xbd"))
}

// DigestText returns the digest as it is stored on a child.
func DigestText(digest uint32) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, digest))
}
