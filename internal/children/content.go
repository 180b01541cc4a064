package children

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"gopf.dev/gopf/internal/jsonvalue"
)

// mostHashed limits the bytes that [Content] hashes: many entries may name the same fields.
const mostHashed = 16 << 20

// Content returns a hash of the values that the fields of a manager have in the JSON of an object.
// The hash of [Stamp] does not include them: a client that changes a field may write the former
// managedFields back. It must not find other values with the same hash. 0 means that the manager
// has no entry.
func Content(entries []ManagedFields, manager string, object []byte) uint64 {
	c, found := content{text: make([]byte, 0, min(len(object), 1<<10)), left: mostHashed}, false
	for _, e := range entries {
		if e.Manager == manager && e.Subresource == "" {
			found = true
			c.visit(e.FieldsV1, object)
		}
	}
	if !found {
		return 0
	}
	return max(c.sum(), 1)
}

// content hashes the values of fields.
type content struct {
	text []byte    // of the values since the last use of hash
	hash hash.Hash // of the values before; nil means that there are none, as for most objects
	left int       // the bytes that may still be hashed
}

// textSize is the size of the text, in bytes, from which on it is hashed.
const textSize = 32 << 10

func (c *content) sum() uint64 {
	if c.hash == nil {
		sum := sha256.Sum256(c.text)
		return binary.BigEndian.Uint64(sum[:])
	}
	_, _ = c.hash.Write(c.text) // a hash never fails
	return binary.BigEndian.Uint64(c.hash.Sum(nil))
}

// visit hashes the parts of a value that have entries in fields, which is a part of fieldsV1. A nil
// value means that it does not exist.
func (c *content) visit(fields, value []byte) {
	w := jsonvalue.NewWalk(fields)
	if !w.Take('{') {
		return
	}
	of := parts{whole: value}
	for c.left > 0 && !w.Take('}') {
		name, inside := unquoted(w.Value()), w.Value()
		if len(inside) == 0 {
			return
		}
		part := of.at(name)
		c.write(name)
		if isEmpty(inside) {
			c.write(part)
		} else {
			c.visit(inside, part)
		}
	}
}

func (c *content) write(part []byte) {
	c.left -= len(part)
	if len(c.text)+len(part) < textSize {
		c.text = append(append(c.text, part...), 0)
		return
	}
	if c.hash == nil {
		c.hash = sha256.New()
	}
	_, _ = c.hash.Write(c.text) // a hash never fails
	_, _ = c.hash.Write(part)
	c.text = append(c.text[:0], 0)
}

// isEmpty reports whether the text is an empty object.
func isEmpty(text []byte) bool {
	w := jsonvalue.NewWalk(text)
	return w.Take('{') && w.Take('}')
}

// parts finds parts of a value by their names in fieldsV1. It reads the value only once, because
// a list may be long.
type parts struct {
	whole   []byte
	members members           // of an object
	read    bool              // members is set
	items   [][]byte          // of a list
	keys    [][]byte          // the members that identify the items in keyed
	keyed   map[string][]byte // the items of a list
	set     map[string][]byte // the items by their texts
}

// at returns a part, or nil.
func (p *parts) at(name []byte) []byte {
	kind, rest, _ := bytes.Cut(name, []byte(":"))
	switch string(kind) {
	case "f": // a member
		if !p.read {
			p.members, p.read = membersOf(p.whole), true
		}
		return p.members.at(rest)
	case "k": // an item with these members
		return p.withKeys(rest)
	case "v": // an item with this value
		if p.set == nil {
			p.set = map[string][]byte{}
			for _, item := range p.list() {
				p.set[string(item)] = item
			}
		}
		return p.set[string(rest)]
	case "i": // an item at this position
		if i, err := strconv.Atoi(string(rest)); err == nil && i >= 0 && i < len(p.list()) {
			return p.list()[i]
		}
		return nil
	}
	return p.whole[:min(1, len(p.whole))] // ".": the value exists, whatever it contains
}

// withKeys returns the item of a list with the members of an object.
func (p *parts) withKeys(object []byte) []byte {
	wanted := membersOf(object)
	if p.keyed == nil {
		p.keyed = map[string][]byte{}
		for _, one := range wanted.all {
			p.keys = append(p.keys, one.name)
		}
		for _, item := range p.list() {
			p.keyed[string(membersOf(item).key(p.keys))] = item
		}
	}
	return p.keyed[string(wanted.key(p.keys))]
}

// list returns the items of a list.
func (p *parts) list() [][]byte {
	if p.items != nil {
		return p.items
	}
	p.items = [][]byte{}
	w := jsonvalue.NewWalk(p.whole)
	if !w.Take('[') {
		return p.items
	}
	for item := w.Value(); len(item) > 0; item = w.Value() {
		p.items = append(p.items, item)
	}
	return p.items
}

// members are the members of an object.
type members struct {
	all    []member
	byName map[string][]byte // nil means that there are few
}

type member struct{ name, value []byte }

// fewMembers is the number of members up to which they are searched one by one.
const fewMembers = 16

func membersOf(object []byte) (m members) {
	w := jsonvalue.NewWalk(object)
	if !w.Take('{') {
		return m
	}
	m.all = make([]member, 0, fewMembers/2)
	for !w.Take('}') {
		name, value := w.Value(), w.Value()
		if len(value) == 0 {
			break
		}
		m.all = append(m.all, member{unquoted(name), value})
	}
	if len(m.all) > fewMembers {
		m.byName = make(map[string][]byte, len(m.all))
		for _, one := range m.all {
			m.byName[string(one.name)] = one.value
		}
	}
	return m
}

// at returns the value of a member, or nil.
func (m members) at(name []byte) []byte {
	if m.byName != nil {
		return m.byName[string(name)]
	}
	for _, one := range m.all {
		if bytes.Equal(one.name, name) {
			return one.value
		}
	}
	return nil
}

// key returns the values of the members with these names as one text.
func (m members) key(names [][]byte) (key []byte) {
	for _, name := range names {
		key = append(append(key, m.at(name)...), 0)
	}
	return key
}

// unquoted returns the text of a JSON string. Of another value, it is empty.
func unquoted(name []byte) []byte {
	if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
		return nil
	}
	return jsonvalue.Unquoted(name)
}
