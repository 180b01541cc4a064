package process

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/pause"
)

// A client can set and remove the annotation of the pause at any rate.
func TestManyPausesWriteFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCluster()
		k := newKind(c, &[]time.Duration{})
		k.Log = slog.New(slog.NewJSONHandler(&log, nil))
		body := c.body()
		m := NewMemory(&Event{Type: "ADDED", Body: body})
		flip := func(times int) (lines []string) {
			log.Reset()
			for range times {
				k.notePause(m, body, &pause.Pause{Key: "gopf.dev/pause"})
				k.notePause(m, body, nil)
			}
			return strings.Split(strings.TrimSpace(log.String()), "\n")
		}
		if lines := flip(1); len(lines) != 2 || !strings.Contains(lines[0], "is paused") || !strings.Contains(lines[1], "has ended") {
			t.Errorf("one pause: %q", lines)
		}
		if lines := flip(10_000); len(lines) > 1000 {
			t.Errorf("10,000 pauses: %d lines", len(lines))
		}
		time.Sleep(time.Minute)
		if lines := flip(1); len(lines) != 2 || !strings.Contains(lines[0], "suppressed") || k.PausedObjects() != 0 {
			t.Errorf("a minute later: %q; %d objects are paused", lines, k.PausedObjects())
		}
	})
}
