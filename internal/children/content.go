package children

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"
	"strconv"

	"gopf.dev/gopf/internal/jsonvalue"
)

const (
	// mostRead limits the bytes that [Content] reads: clients may write entries that name the same
	// fields many times, and each level of a value reads the levels below again.
	mostRead = 8 << 20
	// perEntry is added to the bytes of an entry.
	perEntry = 64
	// perItem is added to the bytes of a list for each item.
	perItem = 24
	// unread is the hash of contents that take more than that to read.
	unread = 1
	// mostKeys limits the members that identify an item of a list. The API has no type with so many.
	mostKeys = 8
)

// Content returns a hash of the values that the fields of a manager have in the JSON of an object.
// The hash of [Stamp] does not include them: a client that changes a field may write the former
// managedFields back. It must not find other values with the same hash. 0 means that the manager
// has no entry.
//
// A field without parts in the manager's entry counts with its whole value, except for the parts that
// other managers have: of an empty map that the manager applies, others may fill their own keys.
func Content(entries []ManagedFields, manager string, object []byte) uint64 {
	c := content{text: make([]byte, 0, min(len(object), 1<<10)), left: mostRead}
	var applied, updated, others [][]byte
	for _, e := range entries {
		switch {
		case e.Manager != manager || e.Subresource != "":
			others = append(others, e.FieldsV1)
		case e.Operation == "Apply":
			applied = append(applied, e.FieldsV1)
		default:
			updated = append(updated, e.FieldsV1)
		}
	}
	own := append(applied, updated...) // those that the operator writes first
	top := topOf(own, object)
	for _, fields := range own {
		c.visit(fields, object, others, &top)
	}
	switch {
	case len(own) == 0:
		return 0
	case c.left < 0:
		return unread
	}
	return max(c.sum(), unread+1)
}

// topOf returns the members of the object that the fields name. It reads the object once, however many
// entries there are, because its length depends on other clients.
func topOf(own [][]byte, object []byte) members {
	var names [][]byte
	for _, fields := range own {
		names = append(names, memberNames(fields)...)
	}
	return membersOf(object, names)
}

// content hashes the values of fields.
type content struct {
	text []byte    // of the values since the last use of hash
	hash hash.Hash // of the values before; nil means that there are none, as for most objects
	left int       // the bytes that may still be read
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
// value means that it does not exist. others are the fields that other managers have in the value. top
// has the members of the object. Of the parts of the object, it is nil.
func (c *content) visit(fields, value []byte, others [][]byte, top *members) {
	w := jsonvalue.NewWalk(fields)
	if c.left -= len(fields); c.left < 0 || !w.Take('{') {
		return
	}
	of := parts{whole: value, fields: fields, left: &c.left, members: top}
	theirs := c.within(others, fields)
	for at := 0; c.left >= 0 && !w.Take('}'); at++ {
		name, inside := unquoted(w.Value()), w.Value()
		if len(inside) == 0 {
			return
		}
		part := of.at(name)
		c.write(name)
		var shared [][]byte
		if at < len(theirs) {
			shared = theirs[at]
		}
		if isEmpty(inside) {
			c.leaf(part, shared)
		} else {
			c.visit(inside, part, shared, nil)
		}
	}
}

// within returns the values of the other managers for each name in the fields, in their order, except
// for empty objects. nil means that there are none. It takes memory in proportion to the fields
// and to the others, not to their product.
func (c *content) within(others [][]byte, fields []byte) (found [][][]byte) {
	if len(others) == 0 {
		return nil
	}
	names := namesOf(fields, math.MaxInt)
	place := func(name []byte) int {
		return slices.IndexFunc(names, func(one []byte) bool { return bytes.Equal(one, name) })
	}
	if len(names) > fewMembers {
		places := make(map[string]int, len(names))
		for i, name := range names {
			places[string(name)] = i + 1
		}
		place = func(name []byte) int { return places[string(name)] - 1 }
	}
	for _, other := range others {
		if c.left -= len(other) + perEntry; c.left < 0 {
			break
		}
		w := jsonvalue.NewWalk(other)
		if !w.Take('{') {
			continue
		}
		for !w.Take('}') {
			name, value := unquoted(w.Value()), w.Value()
			if len(value) == 0 {
				break
			}
			if i := place(name); i >= 0 && !isEmpty(value) {
				if found == nil {
					found = make([][][]byte, len(names))
				}
				found[i] = append(found[i], value)
			}
		}
	}
	return found
}

// leaf hashes a value without the parts that others have. Of a list with such parts, only its
// existence counts.
func (c *content) leaf(value []byte, others [][]byte) {
	w := jsonvalue.NewWalk(value)
	switch {
	case w.Take('{'):
	case w.Take('[') && (len(others) > 0 || w.Take(']')):
		c.write(value[:1])
		return
	default:
		c.write(value)
		return
	}
	c.left -= len(value)
	theirs := map[string]bool{}
	for _, fields := range others {
		if c.left -= len(fields); c.left < 0 {
			break
		}
		for _, name := range namesOf(fields, math.MaxInt) {
			theirs[string(name)] = true
		}
	}
	c.write(value[:1])
	for c.left >= 0 && !w.Take('}') {
		name, part := unquoted(w.Value()), w.Value()
		if len(part) == 0 {
			return
		}
		if !theirs["f:"+string(name)] {
			c.write(name)
			c.write(part)
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
	fields  []byte            // the names
	left    *int              // the bytes that may still be read
	members *members          // of an object, as far as fields has them; nil means that they were not read
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
		if p.members == nil {
			*p.left -= len(p.whole)
			read := membersOf(p.whole, memberNames(p.fields))
			p.members = &read
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
	keys := namesOf(object, mostKeys+1)
	if len(keys) > mostKeys {
		return nil
	}
	if p.keyed == nil {
		p.keyed, p.keys = map[string][]byte{}, keys
		*p.left -= len(p.whole)
		for _, item := range p.list() {
			p.keyed[string(keyOf(item, keys))] = item
		}
	}
	return p.keyed[string(keyOf(object, p.keys))]
}

// list returns the items of a list.
func (p *parts) list() [][]byte {
	if p.items != nil {
		return p.items
	}
	p.items = [][]byte{}
	*p.left -= len(p.whole)
	w := jsonvalue.NewWalk(p.whole)
	if !w.Take('[') {
		return p.items
	}
	for item := w.Value(); len(item) > 0; item = w.Value() {
		p.items = append(p.items, item)
		*p.left -= perItem
	}
	return p.items
}

// memberNames returns the names of the members in the fields.
func memberNames(fields []byte) (names [][]byte) {
	for _, name := range namesOf(fields, math.MaxInt) {
		if member, is := bytes.CutPrefix(name, []byte("f:")); is {
			names = append(names, member)
		}
	}
	return names
}

// namesOf returns the names of an object, at most so many.
func namesOf(object []byte, most int) (names [][]byte) {
	w := jsonvalue.NewWalk(object)
	if !w.Take('{') {
		return nil
	}
	for len(names) < most && !w.Take('}') {
		name, value := w.Value(), w.Value()
		if len(value) == 0 {
			break
		}
		names = append(names, unquoted(name))
	}
	return names
}

// keyOf returns the values of these members of an object as one text.
func keyOf(object []byte, names [][]byte) (key []byte) {
	members := membersOf(object, names)
	for _, name := range names {
		key = append(append(key, members.at(name)...), 0)
	}
	return key
}

// members are some of the members of an object.
type members struct {
	few    []member
	byName map[string][]byte // nil means that there are few
}

type member struct{ name, value []byte }

// fewMembers is the number of members up to which they are searched one by one.
const fewMembers = 16

// membersOf returns the members of an object with these names. The object may have many others.
func membersOf(object []byte, names [][]byte) (m members) {
	w := jsonvalue.NewWalk(object)
	if !w.Take('{') || len(names) == 0 {
		return m
	}
	if len(names) > fewMembers {
		m.byName = make(map[string][]byte, len(names))
		for _, name := range names {
			m.byName[string(name)] = nil
		}
	} else {
		m.few = make([]member, 0, len(names))
	}
	for !w.Take('}') {
		name, value := unquoted(w.Value()), w.Value()
		if len(value) == 0 {
			break
		}
		if m.byName == nil {
			if slices.ContainsFunc(names, func(one []byte) bool { return bytes.Equal(one, name) }) {
				m.few = append(m.few, member{name, value})
			}
		} else if _, wanted := m.byName[string(name)]; wanted {
			m.byName[string(name)] = value
		}
	}
	return m
}

// at returns the value of a member, or nil.
func (m members) at(name []byte) []byte {
	if m.byName != nil {
		return m.byName[string(name)]
	}
	for _, one := range m.few {
		if bytes.Equal(one.name, name) {
			return one.value
		}
	}
	return nil
}

// unquoted returns the text of a JSON string. Of another value, it is empty.
func unquoted(name []byte) []byte {
	if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
		return nil
	}
	return jsonvalue.Unquoted(name)
}
