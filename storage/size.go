package storage

import (
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// compress returns the text gzipped and in base64.
func compress(text string) (string, error) {
	var b strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &b)
	writer, err := gzip.NewWriterLevel(encoder, gzip.BestCompression)
	if err != nil {
		return "", err //mutate:skip the level is valid
	}
	if _, err := io.WriteString(writer, text); err != nil {
		return "", err
	}
	if err := errors.Join(writer.Close(), encoder.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

// decompress reverses compress. It rejects results that are larger than any essence.
func decompress(packed string) (string, error) {
	text, err := jsonvalue.Unpack(packed, jsonvalue.MaxStored)
	return string(text), err
}

// annotationsSize returns the size of the object's annotations after the patch, in bytes,
// counted like the API server does. The keys in except do not count.
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

// sizeOf returns the size of all keys with the value, in bytes.
func sizeOf(keys []string, value string) int {
	size := 0
	for _, key := range keys {
		size += len(key) + len(value)
	}
	return size
}
