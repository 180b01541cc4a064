package vectors_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// standing says how strictly the cases of a file are judged.
type standing string

const (
	// exact: the results are the same; JSON is compared parsed, JSON patches by
	// what they do. Where we differ on purpose, the runner names the quirk of
	// Kopf or the rule of ours, and asserts what we do instead.
	exact standing = "exact"
	// byEffect: the same handlers are called at the same times, and the object is
	// the same after each step; how it gets there may differ.
	byEffect standing = "by effect"
	// differences: results are mapped onto those of the file, and a written list
	// says in which fields they differ and why.
	differences standing = "differences"
)

// row is what the table has for one file.
type row struct {
	standing standing
	// run judges one case.
	run func(t *testing.T, c vector)
	// parts are the keys of the lists of cases in the file; by default "cases".
	// Files that are lists as a whole have one part with no name.
	parts []string
}

// vector is one case of a file.
type vector struct {
	// Part is the key of the list that the case is from.
	Part string
	// Index is the position of the case in that list.
	Index int
	// JSON is the case itself; see decode.
	JSON json.RawMessage
	// File is everything at the top of the file, for inputs that cases share.
	File map[string]json.RawMessage
}

func TestVectors(t *testing.T) {
	folder := cmp.Or(os.Getenv("GOPF_VECTORS"), "testdata")
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no vectors in %s: %v", folder, err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		t.Run(file, func(t *testing.T) {
			row, ok := table[file]
			if !ok {
				t.Fatal("the table has no row for this file")
			}
			cases := readCases(t, path, row.parts)
			if len(cases) == 0 {
				t.Fatal("no cases are found in this file")
			}
			judged := 0
			for i, c := range cases {
				t.Run(fmt.Sprintf("%d %s", i, c.title()), func(t *testing.T) {
					row.run(t, c)
					judged++
				})
			}
			if !t.Failed() {
				fmt.Printf("vectors %s %d\n", file, judged)
			}
		})
	}
}

// readCases collects the cases of all parts, in their order.
func readCases(t *testing.T, path string, parts []string) []vector {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		return vectors("", list, nil)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if parts == nil {
		parts = []string{"cases"}
	}
	var cases []vector
	for _, part := range parts {
		var list []json.RawMessage
		if err := json.Unmarshal(file[part], &list); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		cases = append(cases, vectors(part, list, file)...)
	}
	return cases
}

func vectors(part string, list []json.RawMessage, file map[string]json.RawMessage) []vector {
	cases := make([]vector, len(list))
	for i, text := range list {
		cases[i] = vector{Part: part, Index: i, JSON: text, File: file}
	}
	return cases
}

// title is what the case says about itself, if it does.
func (v vector) title() string {
	var about struct{ Desc, Name, Title, Scenario any }
	_ = json.Unmarshal(v.JSON, &about) // not all cases are objects
	for _, text := range []any{about.Desc, about.Name, about.Title, about.Scenario} {
		if text, ok := text.(string); ok {
			return text
		}
	}
	return v.Part
}

// decode reads a case. Numbers inside of untyped values keep their texts.
func decode[T any](t *testing.T, text json.RawMessage) T {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value T
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("read the case: %v\n%s", err, text)
	}
	return value
}
