package gotypes

import (
	"bytes"
	"strings"
	"unicode"
)

// initialisms are words that Go writes in capitals.
var initialisms = map[string]bool{
	"api": true, "ca": true, "cpu": true, "dns": true, "http": true, "https": true, "id": true, "ip": true, "json": true,
	"sql": true, "ssh": true, "tcp": true, "tls": true, "ttl": true, "udp": true, "uid": true, "uri": true, "url": true, "vm": true, "yaml": true,
}

// identifier returns an exported Go identifier for a key.
func identifier(key string) string {
	var name strings.Builder
	for _, word := range words(key) {
		if lower := strings.ToLower(word); initialisms[lower] {
			name.WriteString(strings.ToUpper(word))
			continue
		}
		letters := []rune(word)
		name.WriteRune(unicode.ToUpper(letters[0]))
		name.WriteString(string(letters[1:]))
	}
	text := name.String()
	if text == "" || !unicode.IsUpper([]rune(text)[0]) {
		return "X" + text // it begins with a digit, or with a letter that has no upper case
	}
	return text
}

// words splits a key at characters that cannot be in an identifier, and before capitals.
func words(key string) (all []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			all, word = append(all, string(word)), nil
		}
	}
	for _, r := range key {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r) && len(word) > 0 && !unicode.IsUpper(word[len(word)-1]):
			end()
		}
		word = append(word, r)
	}
	end()
	return all
}

// taggable reports whether package encoding/json accepts the key in a struct tag.
func taggable(key string) bool {
	for _, r := range key {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return key != ""
}

// comment writes paragraphs as a comment. Empty ones are left out.
func comment(b *bytes.Buffer, indent string, paragraphs ...string) {
	first := true
	for _, p := range paragraphs {
		if strings.TrimSpace(p) == "" {
			continue
		}
		if !first {
			b.WriteString(indent + "//\n")
		}
		first = false
		for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\x00", "", "\ufeff", "").Replace(strings.TrimSpace(p))) {
			b.WriteString(indent + "// ")
			wrap(b, indent, strings.TrimSpace(line))
			b.WriteString("\n")
		}
	}
}

// wrap writes a line of a comment, broken between words.
func wrap(b *bytes.Buffer, indent, line string) {
	const width = 90
	used := 0
	for i, word := range strings.Fields(line) {
		if i > 0 && used+len(word) > width {
			b.WriteString("\n" + indent + "// ")
			used = 0
		} else if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(word)
		used += len(word) + 1
	}
}
