package vectors_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/logs"
)

// trace is the one in the cases.
const trace = `Traceback (most recent call last):
  File "file.py", line 155, in cap
    try: raise ValueError("boom")
         ^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: boom`

// logLines prints the lines that the cases are about. The differences:
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
	object := log.With(slog.Group(logs.Object, "apiVersion", "kopf.dev/v1", "kind", "KopfExample", "name", "kopf-example-1", "uid", "uid-1", "namespace", "default"))
	cluster := log.With(slog.Group(logs.Object, "apiVersion", "kopf.dev/v1", "kind", "Cluster", "name", "c1", "uid", "uid-2", "namespace", ""))
	for i, say := range []func(){
		func() { log.Info("Initial authentication has been initiated.") },
		func() { object.Info("Handler 'create_fn' succeeded.") },
		func() { object.Warn("warn arg") },
		func() { object.Info("with extra", "custom", "field") },
		func() { cluster.Error("Cluster-scoped.") },
		func() { object.Error("Failed:", "stack", trace) },
	} {
		if i >= len(c.Lines) {
			break
		}
		out.Reset()
		say()
		got := strings.TrimSuffix(out.String(), "\n")
		if c.LogFormat == "json" {
			sameJSONLine(t, c.Lines[i], got)
		} else if got, want := anonymous(got), anonymous(c.Lines[i]); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

var header = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] .{20} `)

func anonymous(line string) string {
	return strings.TrimSuffix(header.ReplaceAllString(line, "[time] logger "), " custom=field")
}

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
