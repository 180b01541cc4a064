package recorder

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/logs"
)

func TestLogLinesAboutObjectsBecomeEvents(t *testing.T) {
	var posted []Event
	var printed bytes.Buffer
	next := logs.New(&printed, logs.Options{Format: logs.Plain, Prefix: true, Level: slog.LevelWarn})
	log := slog.New(FromLogs(next, slog.LevelInfo, func(e Event) { posted = append(posted, e) }))

	log.Error("about no object")
	about := log.With(slog.Group(logs.Object, "apiVersion", "v1", "kind", "Pod", "name", "a", "namespace", "ns", "uid", "u"))
	about.Debug("below the level")
	about.Info("Handler 'fn' succeeded.", "handler", "fn")
	about.With("attempt", 2).Warn("slow", "pvc", "x")
	about.Error("broken")

	pod := object.Identity{APIVersion: "v1", Kind: "Pod", Name: "a", Namespace: "ns", UID: "u"}
	want := []Event{
		{About: pod, Type: "Normal", Reason: "Logging", Message: "Handler 'fn' succeeded."},
		{About: pod, Type: "Warning", Reason: "Logging", Message: "slow attempt=2 pvc=x"},
		{About: pod, Type: "Error", Reason: "Logging", Message: "broken"},
	}
	if diff := cmp.Diff(want, posted); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
	const lines = "about no object\n[ns/a] slow attempt=2 pvc=x\n[ns/a] broken\n"
	if diff := cmp.Diff(lines, printed.String()); diff != "" {
		t.Errorf("lines: -want +got\n%s", diff)
	}
}
