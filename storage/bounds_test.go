package storage_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/test/scaling"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// annotation returns an object with one annotation.
func annotation(key, value string) storagetest.Body {
	return storagetest.Body{"metadata": map[string]any{"annotations": map[string]any{"x.dev/" + key: value}}}
}

// Not parallel, because it measures the allocations of the process.
func TestDecompressionBombsAreMalformed(t *testing.T) {
	base := storage.NewAnnotationBase("x.dev")
	for name, text := range map[string]string{
		"zeros":   `{"a":[` + strings.Repeat("0,", 8<<20) + `0]}`,
		"objects": `{"a":[` + strings.Repeat(`{},`, 650_000) + `{}]}`,
		"keys":    `{"a":[` + strings.Repeat(`{"a":0},`, 200_000) + `{}]}`,
		"depth":   strings.Repeat(`{"a":`, 9_990) + "{}" + strings.Repeat("}", 9_990),
		"spaces":  strings.Repeat(" ", 30<<20) + "{}",
	} {
		zipped := packed(t, text)
		for way, load := range map[string]func() error{
			"compressed base": func() error {
				_, _, err := base.Load(t.Context(), annotation("last-handled-configuration-gz", zipped))
				return err
			},
			"base": func() error {
				_, _, err := base.Load(t.Context(), annotation("last-handled-configuration", text))
				return err
			},
			"base in the status": func() error {
				o := storagetest.Body{"status": map[string]any{"x": map[string]any{"last-handled-configuration": text}}}
				_, _, err := storage.NewStatusBase("x").Load(t.Context(), o)
				return err
			},
			"record": func() error {
				o := annotation("fn", strings.TrimLeft(text, " ")+"x") // leading spaces are skipped
				_, err := storage.NewAnnotationProgress("x.dev").Load(t.Context(), o, []string{"fn"})
				return err
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := load()
			runtime.ReadMemStats(&after)
			var malformed *storage.MalformedError
			if !errors.As(err, &malformed) {
				t.Errorf("%s as a %s: error %v", name, way, err)
			}
			limit := uint64(16 << 20)
			if way != "compressed base" {
				limit += 4 * uint64(len(text)) // the text is copied
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > limit {
				t.Errorf("%s as a %s of %d bytes: %d bytes allocated", name, way, len(zipped), took)
			}
		}
	}
}

func TestTooManySubHandlersAreMalformed(t *testing.T) {
	t.Parallel()
	for n, read := range map[int]bool{2_000: true, 20_000: false} {
		var r storage.Record
		err := r.UnmarshalJSON([]byte(`{"subrefs":[` + strings.Repeat(`"a",`, n) + `"a"]}`))
		if (err == nil) != read {
			t.Errorf("%d: error %v", n, err)
		}
	}
}

// A client that may edit the object can forge records that name thousands of sub-handlers:
// the same one again and again, or different ones whose names become the same annotation.
//
// Not parallel, because it measures the allocations of the process.
func TestOneRecordIsDecodedAFewTimesHoweverManyIDsHaveIt(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	aliases, repeated := []string{"fn"}, []string{"fn"}
	for i := range 5_000 {
		id := []byte("a____________b")
		for bit := range 12 {
			id[1+bit] = "<>"[i>>bit&1]
		}
		aliases, repeated = append(aliases, string(id)), append(repeated, "a____________b")
	}
	record := map[string]any{"message": large}
	broken := map[string]any{"message": large, "retries": "many"}
	for name, c := range map[string]struct {
		progress storage.Progress
		object   storagetest.Body
		ids      []string
	}{
		"aliases of an annotation":       {storage.NewAnnotationProgress("x.dev"), annotation("a____________b", `{"message":"`+large+`"}`), aliases},
		"one annotation":                 {storage.NewAnnotationProgress("x.dev"), annotation("a____________b", `{"message":"`+large+`"}`), repeated},
		"a broken annotation":            {storage.NewAnnotationProgress("x.dev"), annotation("a____________b", `{"message":"`+large+`"`), repeated},
		"one record in the status":       {storage.NewStatusProgress("x"), progressInStatus("a____________b", record), repeated},
		"a broken record in the status":  {storage.NewStatusProgress("x"), progressInStatus("a____________b", broken), repeated},
		"both, with the default storage": {storage.DefaultProgress(), storagetest.Body{"status": map[string]any{"kopf": map[string]any{"progress": map[string]any{"a____________b": record}}}}, repeated},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		records, err := c.progress.Load(t.Context(), c.object, c.ids)
		runtime.ReadMemStats(&after)
		var malformed *storage.MalformedError
		if broken := strings.Contains(name, "broken"); errors.As(err, &malformed) != broken || (len(records) == 0) != broken {
			t.Errorf("%s: %d records, error %v", name, len(records), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("%s: %d bytes allocated", name, took)
		}
	}
}

func progressInStatus(id string, record any) storagetest.Body {
	return storagetest.Body{"status": map[string]any{"x": map[string]any{"progress": map[string]any{id: record}}}}
}

// The time to collect damaged records is proportional to their number.
func TestManyDamagedRecordsBecomeOneErrorQuickly(t *testing.T) {
	t.Parallel()
	scaling.Check(t, 4_000, func(n int) {
		records, ids := map[string]any{}, []string{}
		for i := range n {
			id := "fn/" + strconv.Itoa(i)
			records[id], ids = "broken", append(ids, id)
		}
		o := storagetest.Body{"status": map[string]any{"x": map[string]any{"progress": records}}}
		_, err := storage.NewStatusProgress("x").Load(t.Context(), o, ids)
		var malformed *storage.MalformedError
		if !errors.As(err, &malformed) || len(malformed.IDs) != len(ids) {
			t.Errorf("error %.200v", err)
		}
	})
}

// Load accepts everything that Save accepts.
func TestEssencesAboveTheLimitsAreNotSaved(t *testing.T) {
	t.Parallel()
	deep := map[string]any{}
	for range 1_000 {
		deep = map[string]any{"a": deep}
	}
	for name, essence := range map[string]map[string]any{
		"long": {"text": strings.Repeat("ж", 400_000)}, // six bytes each when escaped
		"wide": {"list": make([]any, 300_000)},
		"deep": deep,
	} {
		for _, base := range []storage.Base{storage.NewAnnotationBase("x.dev"), storage.NewStatusBase("x")} {
			p := storagetest.Patch{}
			err := base.Save(t.Context(), storagetest.Body{}, p, essence)
			var large *storage.TooLargeError
			if !errors.As(err, &large) || len(p) > 0 {
				t.Errorf("%s: error %v, a patch with %d keys", name, err, len(p))
			}
		}
	}
}
