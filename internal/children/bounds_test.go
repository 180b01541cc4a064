package children

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"runtime"
	"strings"
	"testing"
)

// A tenant can put any text into the inventory of its object.
func TestForgedInventoriesTakeLittleMemory(t *testing.T) {
	for _, forged := range []string{
		strings.Repeat(";", maxText),
		"1;0a0b0c0d;" + strings.Repeat(",", maxText-20) + ";0/a/AAAAAAAAAAAAAAAA",
		"1;0a0b0c0d;v1 Pod;" + strings.Repeat(",", maxText-20),
		"1;0a0b0c0d;v1 Pod;" + strings.Repeat("/", maxText-20),
	} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(forged)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text := compressed + base64.StdEncoding.EncodeToString(packed.Bytes())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(text, "0a0b0c0d-0000")
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.30s… was decoded", forged)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 10*maxText {
			t.Errorf("%.30s…: %d bytes were allocated", forged, took)
		}
	}
}
