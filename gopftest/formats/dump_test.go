package formats_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dump is an object at a moment of virtual time, as it is kept in a file.
type dump struct {
	// Moment is when the object was dumped. A restart begins at that time, because
	// delays are stored as points in time.
	Moment time.Time `json:"moment"`
	// Keys are the keys of unfinished handlings, by handler.
	Keys map[string]string `json:"keys,omitempty"`
	// Object is the whole object without managed fields.
	Object *unstructured.Unstructured `json:"object"`
}

func (d dump) encode(t *testing.T) []byte {
	t.Helper()
	d.Object.SetManagedFields(nil)
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		t.Fatal(err)
	}
	return shorten(b.Bytes())
}

func read(t *testing.T, raw []byte) dump {
	t.Helper()
	var d dump
	if err := json.Unmarshal(lengthen(raw), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, folder, name string, d dump) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".json"), d.encode(t), 0o644); err != nil {
		t.Fatal(err)
	}
}

// noise is a text of n bytes that does not compress, always the same one.
func noise(n int) string {
	var b strings.Builder
	sum := sha256.Sum256([]byte("noise"))
	for b.Len() < n {
		b.WriteString(base64.RawStdEncoding.EncodeToString(sum[:30]))
		sum = sha256.Sum256(sum[:])
	}
	return b.String()[:n]
}

// sizes are the lengths of the noise in fixtures, the longest first. In files,
// a placeholder stands for it.
var sizes = []int{300_000, 45_000}

// padding is a text of 1,000 bytes that compresses well.
var padding = strings.Repeat("0123456789", 100)

func shorten(raw []byte) []byte {
	for _, n := range sizes {
		raw = bytes.ReplaceAll(raw, []byte(noise(n)), fmt.Appendf(nil, "(noise %d)", n))
	}
	return regexp.MustCompile("(?:"+padding+")+").ReplaceAllFunc(raw, func(found []byte) []byte {
		return fmt.Appendf(nil, "(padding %d)", len(found)/len(padding))
	})
}

func lengthen(raw []byte) []byte {
	for _, n := range sizes {
		raw = bytes.ReplaceAll(raw, fmt.Appendf(nil, "(noise %d)", n), []byte(noise(n)))
	}
	return regexp.MustCompile(`\(padding \d+\)`).ReplaceAllFunc(raw, func(found []byte) []byte {
		var n int
		if _, err := fmt.Sscanf(string(found), "(padding %d)", &n); err != nil {
			panic(err) // the expression matches nothing else
		}
		return []byte(strings.Repeat(padding, n))
	})
}
