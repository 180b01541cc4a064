package process

import "gopf.dev/gopf/internal/object"

// version is a resource version. API servers use decimal numbers, which are kept as such:
// comparing them is cheap, and each object has one in its [Memory]. The zero value means
// that there is none.
type version struct {
	number uint64 // 0 means that it is not a number, or is written in another way
	text   string // only if number is 0
}

// versionOf returns the resource version with the text.
func versionOf(text string) version {
	if n, ok := object.Decimal(text); ok {
		return version{number: n}
	}
	return version{text: text}
}

// ordered reports whether the order of both versions is known: they are numbers.
func (v version) ordered(other version) bool { return v.number > 0 && other.number > 0 }

// newer reports whether v is newer than another version of the same object. If either is
// not a number, every other version counts as newer.
func (v version) newer(than version) bool {
	if !v.ordered(than) {
		return v != than
	}
	return v.number > than.number
}

// acted returns the newest version that was acted on.
func (m *Memory) acted() version {
	if m.version == 0 && m.rare != nil {
		return version{text: m.rare.version}
	}
	return version{number: m.version}
}

// setActed stores the newest version that was acted on. Versions that are not numbers are
// rare.
func (m *Memory) setActed(v version) {
	m.version = v.number
	switch {
	case m.rare != nil:
		m.rare.version = v.text
	case v.text != "":
		m.rare = &rare{version: v.text}
	}
}
