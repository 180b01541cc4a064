package object

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func TestCompressedStateCountsWhenItIsMeasured(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(strings.Repeat(`{"a":0},`, 10_000))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packed := base64.StdEncoding.EncodeToString(b.Bytes())
	const least = 4_000_000
	for _, test := range []struct {
		name, format string
		counts       bool
	}{
		{"annotation", `{"metadata":{"name":"x","annotations":{"a":%q}}}`, true},
		{"status", `{"metadata":{"name":"x"},"status":{"a":%q}}`, true},
		{"spec, which is not unpacked", `{"metadata":{"name":"x"},"spec":{"a":%q}}`, false},
	} {
		body, err := Parse(fmt.Appendf(nil, test.format, packed))
		if err != nil {
			t.Fatal(err)
		}
		if got := body.Memory(); got > least {
			t.Errorf("%s: got %d before the measurement", test.name, got)
		}
		body.Measure()
		var packer Packer
		for copied, b := range map[string]*Body{"": body, " undecoded": body.Undecoded(), " typed": body.WithType("v1", "X"), " packed": packer.Pack(body).Body()} {
			if got := b.Memory() > least; got != test.counts {
				t.Errorf("%s%s: got %d", test.name, copied, b.Memory())
			}
		}
	}
}
