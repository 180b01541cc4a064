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
		{"other escapes", `{"a":"\\\"\u00zz\u0`, 0},
		{"two", `["` + packed + `","` + packed + `"]`, 2 * Memory([]byte(dense))},
		{"at the end", packed, Memory([]byte(dense))},
	} {
		if got := PackedMemory([]byte(test.raw)); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
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
