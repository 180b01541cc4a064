package vectors_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/logs"
)

// logLines prints the lines that the cases are about: what was logged is read off
// the line, with the help of the formats that say more. The differences:
//   - loggers are named after us, and times are our own;
//   - what is attached to a line is shown in texts, too;
//   - a trace is that of a panic, under the key "stack".
func logLines(t *testing.T, v vector) {
	c := decode[struct {
		LogFormat string `json:"log_format"`
		LogPrefix string `json:"log_prefix"`
		LogRefkey string `json:"log_refkey"`
		Lines     []string
	}](t, v.JSON)
	prefix := c.LogFormat != "json" // what the command line does by default
	switch c.LogPrefix {
	case "--log-prefix":
		prefix = true
	case "--no-log-prefix":
		prefix = false
	}
	var out bytes.Buffer
	log := slog.New(logs.New(&out, logs.Options{Format: logs.Format(c.LogFormat), Prefix: prefix, RefKey: c.LogRefkey}))
	for _, want := range c.Lines {
		out.Reset()
		if c.LogFormat == "json" {
			readJSON(t, want, c.LogRefkey, prefix).say(t, log)
			sameJSONLine(t, want, strings.TrimSuffix(out.String(), "\n"))
			continue
		}
		said := readText(want, c.LogFormat == "full", prefix)
		said.say(t, log)
		got, want := anonymous(strings.TrimSuffix(out.String(), "\n")), anonymous(want)
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if said.stack != "" {
			continue
		}
		out.Reset()
		said.extra = map[string]any{"custom": "field"}
		said.say(t, log)
		if got := anonymous(strings.TrimSuffix(out.String(), "\n")); got != want+" custom=field" {
			t.Errorf("with an attribute: got %q, want it after %q", got, want)
		}
	}
}

// said is what was logged.
type said struct {
	level   slog.Level
	message string
	object  map[string]any // what the line is about; nil for nothing
	extra   map[string]any
	stack   string
}

func (s said) say(t *testing.T, log *slog.Logger) {
	if s.object != nil {
		log = log.With(slog.Group(logs.Object, attributes(s.object)...))
	}
	attrs := attributes(s.extra)
	if s.stack != "" {
		attrs = append(attrs, "stack", s.stack)
	}
	log.Log(t.Context(), s.level, s.message, attrs...)
}

func attributes(fields map[string]any) (attrs []any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, key, fields[key])
	}
	return attrs
}

// traced takes a trace off a message.
func (s said) traced() said {
	if message, stack, found := strings.Cut(s.message, "\nTraceback "); found {
		s.message, s.stack = message, "Traceback "+stack
	}
	return s
}

var (
	fullLine = regexp.MustCompile(`(?s)^\[[^]]*\] .{20} \[(\w+) *\] (.*)$`)
	prefixed = regexp.MustCompile(`(?s)^\[(?:([^]/]*)/)?([^]/]*)\] (.*)$`)
	levels   = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "warning": slog.LevelWarn, "error": slog.LevelError}
)

// readText reads a line of text. If it does not tell its object because prefixes are
// off, it has one all the same.
func readText(line string, full, prefix bool) said {
	s := said{message: line}
	if parts := fullLine.FindStringSubmatch(line); full && parts != nil {
		s.level, s.message = levels[strings.ToLower(parts[1])], parts[2]
	}
	parts := prefixed.FindStringSubmatch(s.message)
	switch {
	case !prefix:
		s.object = map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "namespace": "ns", "name": "untold", "uid": "u"}
	case parts != nil:
		s.object = map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "namespace": parts[1], "name": parts[2], "uid": "u"}
		s.message = parts[3]
	}
	return s.traced()
}

// readJSON reads a line of JSON.
func readJSON(t *testing.T, line, refKey string, prefix bool) said {
	fields := decode[map[string]any](t, json.RawMessage(line))
	s := said{level: levels[fields["severity"].(string)], message: fields["message"].(string), extra: map[string]any{}}
	s.stack, _ = fields["exc_info"].(string)
	if s.object = stringMap(fields[cmp.Or(refKey, "object")]); s.object != nil && s.object["namespace"] == nil {
		s.object["namespace"] = ""
	}
	if parts := prefixed.FindStringSubmatch(s.message); prefix && s.object != nil && parts != nil {
		s.message = parts[3]
	}
	for key, value := range fields {
		if !slices.Contains([]string{"severity", "message", "exc_info", "timestamp", cmp.Or(refKey, "object")}, key) {
			s.extra[key] = value
		}
	}
	return s
}

var header = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] .{20} `)

func anonymous(line string) string { return header.ReplaceAllString(line, "[time] logger ") }

func sameJSONLine(t *testing.T, want, got string) {
	t.Helper()
	var w, g map[string]any
	if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(got), &g) != nil {
		t.Fatalf("not JSON: %s or %s", want, got)
	}
	if stack, ok := w["exc_info"]; ok {
		delete(w, "exc_info")
		w["stack"] = stack
	}
	if g["timestamp"] == "" || len(g["timestamp"].(string)) != len(w["timestamp"].(string)) {
		t.Errorf("the timestamp is %q, want one like %q", g["timestamp"], w["timestamp"])
	}
	delete(w, "timestamp")
	delete(g, "timestamp")
	if !diff.Equal(w, g) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
