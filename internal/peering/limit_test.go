package peering

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoRecordPausesOthersForever(t *testing.T) {
	for name, forged := range map[string]map[string]any{
		"centuries of lifetime":    {"priority": 100, "lifetime": math.MaxInt32},
		"no last-seen time":        {"priority": 100, "lifetime": 1_000_000},
		"last seen in the future":  {"priority": 100, "lifetime": 60, "lastseen": "9999-01-01T00:00:00Z"},
		"last seen in five months": {"priority": 100, "lifetime": 60, "lastseen": "2000-06-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := sightings{}
				pauses := func() (bool, int) {
					status := map[string]any{"forged": forged, "me": map[string]any{"priority": 0}}
					counting, dropped := seen.limit(status, "me", time.Now())
					return Decide(time.Now(), "me", 0, counting).Pause(), len(dropped)
				}
				if paused, _ := pauses(); !paused {
					t.Fatal("the record never counted")
				}
				time.Sleep(LongestLifetime - time.Minute)
				if paused, _ := pauses(); !paused {
					t.Error("the record stopped counting before its limit")
				}
				time.Sleep(time.Minute)
				if paused, dropped := pauses(); paused || dropped != 1 {
					t.Errorf("after the limit: paused %v, %d dropped", paused, dropped)
				}
				if paused, dropped := pauses(); paused || dropped != 0 {
					t.Errorf("reported again: paused %v, %d dropped", paused, dropped)
				}
			})
		})
	}
}

func TestRenewedRecordsCountForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := sightings{}
		for range 20 {
			value := Record{Priority: 100, Lifetime: 48 * time.Hour, LastSeen: time.Now()}.Value()
			counting, _ := seen.limit(map[string]any{"other": value}, "me", time.Now())
			if !Decide(time.Now(), "me", 0, counting).Pause() {
				t.Fatal("a renewed record does not count")
			}
			time.Sleep(24 * time.Hour)
		}
		if counting, _ := seen.limit(nil, "me", time.Now()); len(counting) != 0 || len(seen) != 0 {
			t.Error("removed records are still remembered")
		}
	})
}

func TestAnOldRecordWithALongLifetimeNeverCounts(t *testing.T) {
	old := Record{Priority: 100, Lifetime: 300 * 24 * time.Hour, LastSeen: noon.Add(-LongestLifetime)}.Value()
	if counting, dropped := (sightings{}).limit(map[string]any{"other": old}, "me", noon); len(counting) != 0 || len(dropped) != 1 {
		t.Errorf("%v counts, %v dropped", counting, dropped)
	}
}

func TestUnreadableRecordsCannotFloodTheLog(t *testing.T) {
	var log bytes.Buffer
	m := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for round := range 10 {
		status := map[string]any{}
		for i := range 100 {
			status[fmt.Sprint(i)] = map[string]any{"priority": fmt.Sprint("x", round, strings.Repeat("y", 10_000))}
		}
		m.note(Decide(time.Now(), "me", 0, status).Unreadable)
	}
	if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 10 || log.Len() > 10_000 {
		t.Errorf("%d lines, %d bytes", lines, log.Len())
	}
}
