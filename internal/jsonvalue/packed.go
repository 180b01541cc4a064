package jsonvalue

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

const (
	// packedStart begins every packed text: the first bytes of gzip in base64.
	packedStart = "H4sI"
	// maxMeasured limits the bytes that [PackedMemory] unpacks. The rest is estimated from
	// the highest ratio of compression.
	maxMeasured = 4 * MaxStored
	// maxRatio is the highest ratio of compression.
	maxRatio = 1032
	// leastMeasured is the number of bytes that each text counts as in maxMeasured, at least: to
	// unpack an empty one takes about as long.
	leastMeasured = 8 << 10
)

// ErrNotPacked means that a text is not in the form that [Unpack] accepts.
var ErrNotPacked = errors.New("it is not gzipped text in base64")

// Unpack returns the content of a text that is gzipped and encoded in base64. It fails if
// the content has more than limit bytes. It accepts no white space in the text, because
// [PackedMemory] must find each text that can be unpacked.
func Unpack(text string, limit int) ([]byte, error) {
	if !strings.HasPrefix(text, packedStart) || strings.ContainsAny(text, "\r\n") {
		return nil, ErrNotPacked
	}
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(content) > limit {
		return nil, &LimitError{"bytes", limit}
	}
	return content, nil
}

// Memory estimates the memory of decoded JSON. It errs on the high side: brackets and commas
// inside strings count, because there is JSON inside of strings of JSON, and so do escaped ASCII
// characters, each of which may stand for a bracket. A JSON object of one member takes about fifty
// times its text.
func Memory(text []byte) int {
	objects := bytes.Count(text, []byte("{")) + asciiEscapes(text)
	others := bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("["))
	return 2*len(text) + 400*objects + 40*others
}

// asciiEscapes returns how many printable ASCII characters are escaped. An escape may itself have escaped
// characters in JSON inside of strings: then there is at least one more.
func asciiEscapes(text []byte) (n int) {
	for {
		at := bytes.Index(text, []byte(`\u00`))
		if at < 0 || at+4 == len(text) {
			return n
		}
		if text = text[at+4:]; text[0] >= '2' && text[0] <= '7' {
			n++
		}
	}
}

// PackedMemory estimates the memory of all packed texts inside of JSON, after they are
// unpacked and decoded. It keeps none of them in memory, but may take tens of milliseconds.
func PackedMemory(raw []byte) (memory int) {
	raw = unescaped(raw)
	left := maxMeasured
	var m *measurer // most objects need none
	for {
		at := bytes.Index(raw, []byte(packedStart))
		if at < 0 {
			return memory
		}
		raw = raw[at:]
		end := bytes.IndexFunc(raw, func(r rune) bool { return !isBase64(r) })
		if end < 0 {
			end = len(raw)
		}
		if left > 0 {
			if m == nil {
				m = &measurer{}
			}
			size, of := m.measure(raw[:end])
			left -= max(size, leastMeasured)
			memory += of
		} else {
			memory += worstMemory(end)
		}
		raw = raw[end:]
	}
}

// maxStrings is the number of strings of JSON around a packed text, at most: of the object, of a
// record, and of a handling note in its message.
const maxStrings = 3

// unescaped returns the text in which ASCII characters are no longer escaped: there is JSON inside
// of strings of JSON, so an escape may itself have escaped characters.
func unescaped(raw []byte) []byte {
	for range maxStrings {
		if !bytes.Contains(raw, []byte(`\u00`)) && !bytes.Contains(raw, []byte(`\/`)) {
			return raw
		}
		raw = unescapedOnce(raw)
	}
	return raw
}

// unescapedOnce replaces each escape of an ASCII character. It takes any number of backslashes for
// one.
func unescapedOnce(raw []byte) []byte {
	plain := make([]byte, 0, len(raw))
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return append(plain, raw...)
		}
		plain, raw = append(plain, raw[:at]...), bytes.TrimLeft(raw[at:], `\`)
		var char [1]byte
		switch {
		case bytes.HasPrefix(raw, []byte("u00")) && len(raw) >= 5 && decodesHex(char[:], raw[3:5]):
			plain, raw = append(plain, char[0]), raw[5:]
		case bytes.HasPrefix(raw, []byte("/")):
		default:
			plain = append(plain, '\\')
		}
	}
}

func decodesHex(into, text []byte) bool {
	_, err := hex.Decode(into, text)
	return err == nil
}

func isBase64(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '='
}

// worstMemory returns the highest memory that a packed text of the length can take. Texts with
// more values are never decoded.
func worstMemory(length int) int {
	most := min(MaxStored, length*maxRatio)
	return 2*most + 400*min(most/len(`{"":0}`), MaxValues/objectValues) + 40*min(most/2, MaxValues)
}

// measurer measures packed texts, one after another.
type measurer struct {
	text    bytes.Reader
	decoded *bufio.Reader
	reader  gzip.Reader
	buffer  []byte
}

// measure unpacks a text, at most [MaxStored] bytes of it. It returns their number, and the
// estimate of their memory.
func (m *measurer) measure(packed []byte) (size, memory int) {
	m.text.Reset(packed)
	decoder := base64.NewDecoder(base64.StdEncoding, &m.text)
	if m.decoded == nil {
		m.decoded, m.buffer = bufio.NewReader(decoder), make([]byte, 16<<10)
	}
	m.decoded.Reset(decoder)
	if err := m.reader.Reset(m.decoded); err != nil {
		return 0, 0
	}
	for size <= MaxStored {
		n, err := m.reader.Read(m.buffer)
		size += n
		memory += Memory(m.buffer[:n])
		if err != nil {
			break
		}
	}
	return size, memory
}
