package jsonvalue

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func pack(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestPackedTextsAreUnpackedUpToTheLimit(t *testing.T) {
	packed := pack(t, "hello")
	if got, err := Unpack(packed, 5); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Unpack(packed, 4); err == nil {
		t.Errorf("a text above the limit: got %q", got)
	}
}

// The memory of texts that are written in another way would not be measured.
func TestTextsThatCannotBeFoundAreNotUnpacked(t *testing.T) {
	packed := pack(t, "hello")
	for _, text := range []string{"", "x", "\n" + packed, packed[:2] + "\n" + packed[2:], packed[:10] + "\r" + packed[10:], packed + "\n", packed[:12]} {
		if got, err := Unpack(text, 100); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestTheMemoryOfPackedTextsIsThatOfTheirContent(t *testing.T) {
	dense := "[" + strings.Repeat(`{"a":0},`, 10_000) + "0]"
	packed := pack(t, dense)
	var escapes strings.Builder
	for _, c := range packed {
		if c == '/' {
			escapes.WriteString(`\/`)
		} else {
			fmt.Fprintf(&escapes, `\\u%04x`, c)
		}
	}
	for _, test := range []struct {
		name, raw string
		want      int
	}{
		{"none", `{"annotations":{"a":"b"}}`, 0},
		{"no gzip", `{"annotations":{"a":"H4sI"}}`, 0},
		{"one", `{"annotations":{"a":"` + packed + `"}}`, Memory([]byte(dense))},
		{"one in a record", `{"annotations":{"a":"{\"message\":\"gz:` + packed + `\"}"}}`, Memory([]byte(dense))},
		{"escaped at the start", `{"annotations":{"a":"{\"message\":\"gz:\\u00484sI` + packed[4:] + `\"}"}}`, Memory([]byte(dense))},
		{"escaped in the middle", `{"a":"` + packed[:20] + fmt.Sprintf(`\u00%02X`, packed[20]) + packed[21:] + `\n"}`, Memory([]byte(dense))},
		{"escaped throughout", `{"a":"` + escapes.String() + `"}`, Memory([]byte(dense))},
		{"an escaped escape", `{"annotations":{"a":"{\"message\":\"gz:\u005cu00484sI` + packed[4:] + `\"}"}}`, Memory([]byte(dense))},
		{"escaped digits", `{"annotations":{"a":"{\"message\":\"gz:\\u00\u0034\u00384sI` + packed[4:] + `\"}"}}`, Memory([]byte(dense))},
		{"other escapes", `{"a":"\\\"\u00zz\u0`, 0},
		{"two", `["` + packed + `","` + packed + `"]`, 2 * Memory([]byte(dense))},
		{"at the end", packed, Memory([]byte(dense))},
	} {
		if got := PackedMemory([]byte(test.raw)); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// Each string of JSON may escape characters of the JSON inside of it, and of the escapes there.
func TestEscapesHideNoMemory(t *testing.T) {
	dense := "[" + strings.Repeat(`{"":[0,0]},`, 100) + "0]"
	for name, escape := range map[string]func(c byte) string{
		"not escaped":               func(c byte) string { return string(c) },
		"escaped":                   func(c byte) string { return fmt.Sprintf(`\u%04x`, c) },
		"escaped as capitals":       func(c byte) string { return fmt.Sprintf(`\u%04X`, c) },
		"with an escaped backslash": func(c byte) string { return fmt.Sprintf(`\u005cu%04x`, c) },
		"with an escaped u":         func(c byte) string { return fmt.Sprintf(`\\\u0075%04x`, c) },
		"with escaped digits": func(c byte) string {
			return fmt.Sprintf(`\\u00\u00%02x\u00%02x`, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		},
	} {
		var text strings.Builder
		for _, c := range []byte(dense) {
			if strings.ContainsRune("{[,", rune(c)) {
				text.WriteString(escape(c))
			} else {
				text.WriteByte(c)
			}
		}
		if got, want := Memory([]byte(text.String())), Memory([]byte(dense)); got < want {
			t.Errorf("%s: got %d, less than %d", name, got, want)
		}
	}
	umlauts := strings.Repeat(`\u00e4`, 1000)
	if got := Memory([]byte(umlauts)); got != 2*len(umlauts) {
		t.Errorf("other characters: got %d", got)
	}
	if Memory([]byte(`\u00`)) != 8 {
		t.Error("a part of an escape counts")
	}
}

func TestTheMemoryOfManyPackedTextsIsNeverUnderestimated(t *testing.T) {
	large := pack(t, strings.Repeat(" ", MaxStored))
	dense := pack(t, "["+strings.Repeat(`{"":0},`, MaxValues/objectValues)+"0]")
	hidden := strings.Repeat(`"`+large+`",`, 10) + `"` + dense + `"`
	if got, want := PackedMemory([]byte(hidden)), PackedMemory([]byte(dense)); got < want {
		t.Errorf("got %d, less than the %d of the last text", got, want)
	}
	if got, most := PackedMemory([]byte(dense)), worstMemory(len(dense)); got > most {
		t.Errorf("the highest memory is %d, but a text takes %d", most, got)
	}
}

// Each of the empty texts takes the time and the memory of a reader.
func TestFewOfManyEmptyTextsAreUnpacked(t *testing.T) {
	empty := []byte(strings.Repeat(pack(t, "")[:14]+" ", 50_000))
	var m measurer
	one := testing.AllocsPerRun(1, func() { m.measure(empty[:14]) })
	if got, most := testing.AllocsPerRun(1, func() { PackedMemory(empty) }), one*maxMeasured/leastMeasured+100; got > most {
		t.Errorf("%v allocations, want at most %v", got, most)
	}
}
