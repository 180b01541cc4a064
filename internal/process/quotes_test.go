package process

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/storage"
)

// copies is a base storage whose objects are copies of one with a long uid.
type copies struct{ storage.Base }

func (copies) Copied(storage.Object) (uid string, copied bool) {
	return strings.Repeat("ж", 5000), true
}

func (copies) Discard(storage.Object, storage.Patch) {}

func (copies) Load(context.Context, storage.Object) (essence map[string]any, found bool, err error) {
	return nil, true, nil
}

// A client can write texts of up to 256 KiB into the annotations of its objects.
func TestTextsOfAnnotationsAreCutInLogLines(t *testing.T) {
	for key, prepare := range map[string]func(*cluster, *Processor){
		"reason": func(c *cluster, _ *Processor) {
			c.object["metadata"].(map[string]any)["annotations"] = map[string]any{"gopf.dev/pause": strings.Repeat("ж", 5000)}
		},
		"original": func(_ *cluster, k *Processor) { k.Config.Base = copies{k.Config.Base} },
	} {
		t.Run(key, func(t *testing.T) {
			var calls int
			var alarms []time.Duration
			var log bytes.Buffer
			c := newCluster()
			k := newKind(c, &alarms, on(cause.Create, &calls))
			k.Log = slog.New(slog.NewJSONHandler(&log, nil))
			prepare(c, k)
			event := &Event{Type: "ADDED", Body: c.body()}
			k.Turn(t.Context(), NewMemory(event), Occasion{Event: event})
			quoted := ""
			for line := range strings.Lines(log.String()) {
				var fields map[string]any
				if err := json.Unmarshal([]byte(line), &fields); err != nil {
					t.Fatal(err)
				}
				if text, ok := fields[key].(string); ok {
					quoted = text
				}
			}
			if n := utf8.RuneCountInString(quoted); n != 201 { // with the sign of the cut
				t.Errorf("%s has %d characters, want 200", key, n)
			}
		})
	}
}
