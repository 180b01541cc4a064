package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTextsCannotForgeLinesOrControlATerminal(t *testing.T) {
	const forged = "fine\n[2026-01-01] [ERROR] forged\x1b[2J\x9b\u202e\r\x00ü\tend"
	const escaped = `fine\n[2026-01-01] [ERROR] forged\x1b[2J\x9b\u202e\r\x00ü` + "\tend"
	for _, format := range []Format{Plain, Full, Short} {
		var out bytes.Buffer
		log := slog.New(New(&out, Options{Format: format, Prefix: true}))
		log.With(slog.Group(Object, "name", "a\nb", "namespace", "n")).Info(forged,
			"text", forged, "json", "{"+forged, "list", "["+forged, "k\ney", 1, "stack", "one\ntwo\x1b[2J\n")
		line, block, _ := strings.Cut(out.String(), "\n")
		if block != "one\ntwo\\x1b[2J\n" {
			t.Errorf("%s: below the line: %q", format, block)
		}
		for _, want := range []string{`[n/a\nb] ` + escaped, `text="fine\n`, `json="{fine\n`, `list="[fine\n`, `k\ney=1`} {
			if !strings.Contains(line, want) {
				t.Errorf("%s: no %q in %q", format, want, line)
			}
		}
	}
}

func TestJSONLinesCannotControlATerminal(t *testing.T) {
	const text = "a\x1b[2J\u009b\u202eb\u007fü"
	var out bytes.Buffer
	slog.New(New(&out, Options{Format: JSON})).With(slog.Group(Object, "name", text)).Info(text, "text", text, "structured", []string{text})
	var fields struct {
		Message, Text string
		Object        struct{ Name string }
		Structured    []string
	}
	if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	if fields.Message != text || fields.Text != text || fields.Object.Name != text || fields.Structured[0] != text {
		t.Errorf("the line has another meaning: %s", out.String())
	}
	if rest := strings.TrimSuffix(out.String(), "\n"); strings.ContainsFunc(rest, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("the line has control characters: %q", rest)
	}
}

func TestOnlyStructuredValuesArePrintedAsJSON(t *testing.T) {
	type name string
	for want, value := range map[string]any{
		`plain`:                 "plain",
		`""`:                    "",
		`"a=b"`:                 "a=b",
		`"{}"`:                  "{}",
		`"[]"`:                  "[]",
		`"{\"a\":1} handler=x"`: `{"a":1} handler=x`,
		`"[1] handler=x"`:       name("[1] handler=x"),
		`"{x} handler=y"`:       errors.New("{x} handler=y"),
		`{"a":"b c=d"}`:         map[string]any{"a": "b c=d"},
		`["a b","{"]`:           []string{"a b", "{"},
		`{"raw":1}`:             json.RawMessage(`{"raw": 1}`),
		`null`:                  nil,
		`12`:                    12,
	} {
		var out bytes.Buffer
		slog.New(New(&out, Options{Format: Plain})).Info("Seen:", "value", value)
		if got := strings.TrimSuffix(out.String(), "\n"); got != "Seen: value="+want {
			t.Errorf("got %s, want value=%s", got, want)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	for _, format := range []Format{Plain, JSON} {
		var out bytes.Buffer
		slog.New(New(&out, Options{Format: format})).Info(long, "text", long, "list", []string{long}, "stack", long)
		if n := out.Len(); n > 3*longestText+longestBlock+200 || !utf8.Valid(out.Bytes()) {
			t.Errorf("%s: a line of %d bytes", format, n)
		}
		if got := strings.Count(out.String(), "…"); format == Plain && got != 4 {
			t.Errorf("%d of 4 texts are marked as cut", got)
		}
		if format == JSON && !json.Valid(out.Bytes()) {
			t.Error("the line is not valid JSON")
		}
	}
}

func TestLongNamesOfObjectsAreCut(t *testing.T) {
	long := strings.Repeat("\x7f", 1<<20)
	for _, format := range []Format{Plain, Full, Short, JSON} {
		var out bytes.Buffer
		log := slog.New(New(&out, Options{Format: format, Prefix: true}))
		log.With(slog.Group(Object, "name", long, "namespace", long, "uid", long)).Info("Denied.")
		if n := out.Len(); n > 32*longestName || !strings.Contains(out.String(), "…") {
			t.Errorf("%s: a line of %d bytes", format, n)
		}
	}
	const valid = 253
	var out bytes.Buffer
	name := strings.Repeat("x", valid)
	slog.New(New(&out, Options{Format: Plain, Prefix: true})).With(slog.Group(Object, "name", name)).Info("Denied.")
	if !strings.HasPrefix(out.String(), "["+name+"] ") {
		t.Errorf("a name of %d bytes is cut: %s", valid, out.String())
	}
}
