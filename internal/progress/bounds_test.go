package progress_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// Not parallel: it measures the allocations of the process.
func TestDecodeNoteRejectsDecompressionBombs(t *testing.T) {
	for name, text := range map[string]string{
		"zeros":   `{"v":2,"essences":[` + strings.Repeat("0,", 30<<20) + `0]}`,
		"objects": `{"v":2,"essences":[` + strings.Repeat("{},", 650_000) + `{}]}`,
		"keys":    `{"v":2,"essences":[` + strings.Repeat(`{"a":0},`, 200_000) + `{}]}`,
		"depth":   `{"v":2,"essences":[` + strings.Repeat(`{"a":`, 9_990) + "1" + strings.Repeat("}", 9_990) + `]}`,
	} {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = w.Write([]byte(text)) // writing to memory cannot fail
		_ = w.Close()
		for way, message := range map[string]string{"compressed": "gz:" + base64.StdEncoding.EncodeToString(b.Bytes()), "plain": text} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := progress.DecodeNote(storage.Record{Message: &message}, nil)
			runtime.ReadMemStats(&after)
			var malformed *storage.MalformedError
			if !errors.As(err, &malformed) || !n.Empty() {
				t.Errorf("%s, %s: error %v", name, way, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20+2*uint64(len(message)) {
				t.Errorf("%s, %s, %d bytes: %d bytes allocated", name, way, len(message), took)
			}
		}
	}
}

// A forged note may have many digests. Each could make the operator encode the object, which
// may be large.
//
// Not parallel: it measures the allocations of the process.
func TestManyDigestsEncodeTheObjectOnce(t *testing.T) {
	n := &progress.Note{Reason: cause.Update}
	for i := range 60 {
		n.Saw(strconv.Itoa(i), map[string]any{"gopf.dev/digest": strconv.Itoa(i)}, time.Time{})
	}
	large := map[string]any{"spec": strings.Repeat("x", 1<<20)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if !n.Late(large) {
		t.Error("no handler is late")
	}
	n.Absorb(large, map[string]any{"spec": "small"})
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
		t.Errorf("%d bytes allocated", took)
	}
}

// DecodeNote must accept the result of Encode.
func TestEncodeReplacesTooLargeEssencesWithDigests(t *testing.T) {
	t.Parallel()
	deep := map[string]any{}
	for range 999 {
		deep = map[string]any{"a": deep}
	}
	for name, essence := range map[string]map[string]any{"deep": deep, "wide": {"list": make([]any, 300_000)}} {
		n := &progress.Note{Reason: cause.Update}
		n.Saw("h", essence, time.Time{})
		record, err := n.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := progress.DecodeNote(record, nil)
		if err != nil || read.Earlier("h") == nil {
			t.Errorf("%s: %v, error %v", name, read, err)
		}
	}
}
