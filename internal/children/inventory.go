package children

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Entry is a child in an inventory.
type Entry struct {
	Key
	UID     string // its first 8 hex digits; "" means that the child is about to be created
	Stamp   uint32
	Content uint64 // see [Content]; 0 means that it is not known
	Digest  uint32
	Wave    int
	Outside bool // it has no owner reference: only the operator can delete it
	Orphan  bool // it stays when its owner is deleted
	Last    bool // it is deleted last; see PruneLast of [Desired]

	// Stray means that no inventory has the child, and that it is in another namespace than
	// its owner. A tenant may have forged it. It is not stored.
	Stray bool
}

// Inventory is the stored list of the children of one object. It survives restarts: with
// it, a restart writes nothing, and deletions call no handler.
type Inventory struct {
	Owner   string // the uid of the object
	Entries []Entry
}

const (
	version = "1"
	// MaxEntries limits the children of one handler of one object.
	MaxEntries = 2000
	// compressFrom is the size of the text in bytes from which it is compressed.
	compressFrom = 8 << 10
	compressed   = "gz:"
	// maxText limits the text of an inventory after it is decompressed.
	maxText = 1 << 20
	// contentFlag precedes the hash of the content in the flags of an entry.
	contentFlag = "="
)

// ErrInventory means that a stored inventory cannot be read. It counts as absent.
var ErrInventory = errors.New("the inventory of children is malformed")

// Find returns the entry of a child. nil means none.
func (v *Inventory) Find(k Key) *Entry {
	i := slices.IndexFunc(v.Entries, func(e Entry) bool { return e.Key == k })
	if i < 0 {
		return nil
	}
	return &v.Entries[i]
}

// Encode returns the inventory as text. An empty inventory is "".
func (v *Inventory) Encode() (string, error) {
	if len(v.Entries) == 0 {
		return "", nil
	}
	if len(v.Entries) > MaxEntries {
		return "", fmt.Errorf("%d children are more than the limit of %d; use several objects", len(v.Entries), MaxEntries)
	}
	var kinds, entries []string
	for _, e := range v.Entries {
		kind := e.APIVersion + " " + e.Kind
		i := slices.Index(kinds, kind)
		if i < 0 {
			i, kinds = len(kinds), append(kinds, kind)
		}
		entries = append(entries, e.encode(i))
	}
	text := strings.Join([]string{version, Short(v.Owner), strings.Join(kinds, ","), strings.Join(entries, ",")}, ";")
	if len(text) < compressFrom {
		return text, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	return compressed + base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

func (e Entry) encode(kind int) string {
	var hashes [12]byte
	uid, _ := hex.DecodeString(e.UID) // an invalid uid counts as unknown
	copy(hashes[:4], uid)
	binary.BigEndian.PutUint32(hashes[4:], e.Stamp)
	binary.BigEndian.PutUint32(hashes[8:], e.Digest)
	flags := ""
	for _, f := range []struct {
		set  bool
		name string
	}{{e.Outside, "x"}, {e.Orphan, "o"}, {e.Last, "l"}} {
		if f.set {
			flags += f.name
		}
	}
	if e.Content != 0 { // earlier versions ignore it: it has no small letters
		flags += fmt.Sprintf("%s%016X", contentFlag, e.Content)
	}
	parts := []string{strconv.Itoa(kind), e.Name, base64.RawURLEncoding.EncodeToString(hashes[:]), strconv.Itoa(e.Wave), flags, e.Namespace}
	text := strings.TrimRight(strings.Join(parts, "/"), "/")
	return strings.TrimSuffix(text, "/0")
}

// Decode reads an inventory. One that belongs to another object, or that is malformed,
// is an [ErrInventory].
func Decode(text, owner string) (*Inventory, error) {
	inventory := &Inventory{Owner: owner}
	if text == "" {
		return inventory, nil
	}
	text, err := decompress(text)
	if err != nil {
		return inventory, err
	}
	var parts [4]string
	if !split(text, ";", parts[:], 4) || parts[0] != version || parts[1] != Short(owner) {
		return inventory, ErrInventory
	}
	if strings.Count(parts[2], ",") >= MaxEntries || strings.Count(parts[3], ",") >= MaxEntries {
		return inventory, ErrInventory
	}
	kinds := strings.Split(parts[2], ",")
	entries := make([]Entry, 0, strings.Count(parts[3], ",")+1)
	seen := make(map[Key]bool, cap(entries))
	for line := range strings.SplitSeq(parts[3], ",") {
		e, ok := decodeEntry(line, kinds)
		if !ok {
			return inventory, ErrInventory
		}
		if !seen[e.Key] && e.Problem() == nil { // it may be forged
			seen[e.Key] = true
			entries = append(entries, e)
		}
	}
	inventory.Entries = entries
	return inventory, nil
}

func decompress(text string) (string, error) {
	packed, ok := strings.CutPrefix(text, compressed)
	if !ok {
		return text, nil
	}
	raw, err := jsonvalue.Unpack(packed, maxText)
	if err != nil {
		return "", ErrInventory
	}
	return string(raw), nil
}

// split puts the parts of a text into a slice. It reports whether there are at least so
// many of them, and not more than the slice has room for.
func split(text, separator string, into []string, least int) bool {
	n := 0
	for part := range strings.SplitSeq(text, separator) {
		if n == len(into) {
			return false
		}
		into[n] = part
		n++
	}
	return n >= least
}

func decodeEntry(line string, kinds []string) (e Entry, ok bool) {
	var parts [6]string
	if !split(line, "/", parts[:], 3) {
		return e, false
	}
	i, err := strconv.Atoi(parts[0])
	if err != nil || i < 0 || i >= len(kinds) || parts[1] == "" {
		return e, false
	}
	hashes, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(hashes) != 12 {
		return e, false
	}
	if parts[3] != "" {
		if e.Wave, err = strconv.Atoi(parts[3]); err != nil || e.Wave < 0 || e.Wave > MaxEntries {
			return e, false
		}
	}
	e.APIVersion, e.Kind, ok = strings.Cut(kinds[i], " ")
	e.Name, e.Namespace = parts[1], parts[5]
	if uid := hex.EncodeToString(hashes[:4]); uid != "00000000" {
		e.UID = uid
	}
	e.Stamp, e.Digest = binary.BigEndian.Uint32(hashes[4:]), binary.BigEndian.Uint32(hashes[8:])
	if _, content, found := strings.Cut(parts[4], contentFlag); found {
		hash, err := strconv.ParseUint(content, 16, 64)
		if err != nil {
			return e, false
		}
		e.Content = hash
	}
	e.Outside, e.Orphan, e.Last = strings.Contains(parts[4], "x"), strings.Contains(parts[4], "o"), strings.Contains(parts[4], "l")
	return e, ok
}
