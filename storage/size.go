package storage

import (
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
)

// decompressLimit is how many bytes an essence may have that is read: many
// times of what the API server accepts as an object, so that only a forgery
// exceeds it.
const decompressLimit = 16 << 20

// compress makes a text fit for an annotation that is a fraction of its size.
func compress(text string) (string, error) {
	var b strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &b)
	writer, err := gzip.NewWriterLevel(encoder, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(writer, text); err != nil {
		return "", err
	}
	if err := errors.Join(writer.Close(), encoder.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

func decompress(packed string) (string, error) {
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(reader, decompressLimit+1))
	if err == nil && len(text) > decompressLimit {
		err = errors.New("it is too large when decompressed")
	}
	return string(text), err
}

// annotationsSize counts the bytes that the object's annotations will have when
// the patch is applied, as the API server does, those under the keys aside.
func annotationsSize(o Object, p Patch, except []string) int {
	present, _ := o.Lookup("metadata", "annotations")
	patched, _ := p.Lookup("metadata", "annotations")
	after, _ := patched.(map[string]any)
	size := 0
	count := func(key string, value any) {
		if text, ok := value.(string); ok && !slices.Contains(except, key) {
			size += len(key) + len(text)
		}
	}
	if before, ok := present.(map[string]any); ok {
		for key, value := range before {
			if _, ok := after[key]; !ok {
				count(key, value)
			}
		}
	}
	for key, value := range after {
		count(key, value)
	}
	return size
}

// sizeOf counts the bytes of the value under all keys.
func sizeOf(keys []string, value string) int {
	size := 0
	for _, key := range keys {
		size += len(key) + len(value)
	}
	return size
}
