package logs

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(o Options) []string {
	var out bytes.Buffer
	o.Level = slog.LevelDebug
	log := slog.New(New(&out, o))
	object := log.With(slog.Group(Object, "apiVersion", "kopf.dev/v1", "kind", "KopfExample", "name", "kex", "namespace", "ns", "uid", "u1"))
	log.Info("Hello.")
	object.Info("Handler 'create_fn' succeeded.", "handler", "create_fn")
	object.Warn("Careful:", "size", 12, "why", "too big", "error", errors.New("boom"))
	object.WithGroup("g").Debug("Deep:", "a", 1, slog.Group("h", "b", []int{1, 2}))
	log.With(slog.Group(Object, "name", "c1", "namespace", "")).Error("Failed:", "stack", "main.go:1\nmain.go:2\n")
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestPlainLinesAreMessagesWithTheirOtherAttributes(t *testing.T) {
	want := []string{
		"Hello.",
		"[ns/kex] Handler 'create_fn' succeeded.",
		`[ns/kex] Careful: size=12 why="too big" error=boom`,
		"[ns/kex] Deep: g.a=1 g.h.b=[1,2]",
		"[c1] Failed:", "main.go:1", "main.go:2",
	}
	if diff := cmp.Diff(want, lines(Options{Format: Plain, Prefix: true})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestFullLinesHaveTimeLoggerAndLevel(t *testing.T) {
	got := lines(Options{Format: Full})
	for i, want := range []string{
		"gopf                 [INFO    ] Hello.",
		"gopf.objects         [INFO    ] Handler 'create_fn' succeeded.",
		"gopf.objects         [WARNING ] Careful:",
		"gopf.objects         [DEBUG   ] Deep:",
		"gopf.objects         [ERROR   ] Failed:",
	} {
		if _, rest, _ := strings.Cut(got[i], "] "); !strings.HasPrefix(rest, want) {
			t.Errorf("line %d: got %q, want %q", i, rest, want)
		}
	}
}

func TestShortLinesHaveTheTimeOfDayAndTheLevel(t *testing.T) {
	time := regexp.MustCompile(`^\d\d:\d\d:\d\d `)
	want := []string{
		"INFO    Hello.",
		"INFO    [ns/kex] Handler 'create_fn' succeeded.",
		`WARNING [ns/kex] Careful: size=12 why="too big" error=boom`,
		"DEBUG   [ns/kex] Deep: g.a=1 g.h.b=[1,2]",
		"ERROR   [c1] Failed:", "main.go:1", "main.go:2",
	}
	got := lines(Options{Format: Short, Prefix: true})
	for i, line := range got[:5] {
		if !time.MatchString(line) {
			t.Errorf("no time: %q", line)
		}
		got[i] = time.ReplaceAllString(line, "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	coloured := regexp.MustCompile(`^\x1b\[2m\d\d:\d\d:\d\d\x1b\[0m \x1b\[32mINFO   \x1b\[0m \x1b\[2m\[ns/kex\]\x1b\[0m Handler`)
	if line := lines(Options{Format: Short, Prefix: true, Colour: true})[1]; !coloured.MatchString(line) {
		t.Errorf("got %q", line)
	}
}

func TestJSONLinesHaveAttributesAndTheObjectAtTopLevel(t *testing.T) {
	got := lines(Options{Format: JSON, RefKey: "k8s"})
	for i, want := range []string{
		`{"message": "Hello.", "timestamp": "`,
		`{"message": "Handler 'create_fn' succeeded.", "handler": "create_fn", "timestamp": "`,
		`{"message": "Careful:", "size": 12, "why": "too big", "error": "boom", "timestamp": "`,
		`{"message": "Deep:", "g": {"a":1,"h":{"b":[1,2]}}, "timestamp": "`,
		`{"message": "Failed:", "stack": "main.go:1\nmain.go:2\n", "timestamp": "`,
	} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("line %d: got %s, want %s", i, got[i], want)
		}
	}
	if want := `"k8s": {"apiVersion":"kopf.dev/v1","kind":"KopfExample","name":"kex","namespace":"ns","uid":"u1"}, "severity": "info"}`; !strings.HasSuffix(got[1], want) {
		t.Errorf("got %s, want %s at the end", got[1], want)
	}
	if want := `"k8s": {"name":"c1","namespace":null}, "severity": "error"}`; !strings.HasSuffix(got[4], want) {
		t.Errorf("got %s, want %s at the end", got[4], want)
	}
}

func TestLinesBelowTheLevelAreNotPrinted(t *testing.T) {
	var out bytes.Buffer
	slog.New(New(&out, Options{Format: Plain})).Debug("hidden")
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}

func TestNamedStringTypesArePrintedAsText(t *testing.T) {
	type operation string
	var out bytes.Buffer
	slog.New(New(&out, Options{Format: Plain})).Info("wanted", "operation", operation("CREATE"))
	if got := out.String(); got != "wanted operation=CREATE\n" {
		t.Errorf("got %q", got)
	}
}
