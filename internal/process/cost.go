package process

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/object"
)

const (
	// costlyTime and costlyMemory are the thresholds above which a turn is logged.
	costlyTime   = 10 * time.Second
	costlyMemory = 64 << 20
	// smallBody is the size below which the memory for decoded values does not matter.
	smallBody = 256 << 10
)

// cost is the time and memory that a turn took in the framework's own code.
//
// Go does not measure the CPU time of a goroutine. The elapsed time stands for it,
// without the time of handlers and requests; filters and storages count. Go does not
// measure the memory of a goroutine either. It is estimated: the size of the object,
// plus its essence and its base as decoded values.
type cost struct {
	time   time.Duration
	memory int
	room   *callRoom // for sub-handlers; nil means no limit
}

// add adds the cost of one pass over the object.
func (c *cost) add(s *view, took time.Duration) {
	c.time += took - s.handlerTime
	memory := s.body.Size() + footprint(s.base)
	if s.body.Size() >= smallBody {
		memory += 2 * footprint(s.cause.New) // handlers get the whole object decoded
	}
	c.memory = max(c.memory, memory) // each pass decodes its own values
}

// report logs an expensive turn with its object: the first one as a warning, later
// ones at DEBUG.
func (p *Processor) report(m *Memory, body *object.Body, c *cost) {
	if c.time < costlyTime && c.memory < costlyMemory {
		return
	}
	level := slog.LevelDebug
	if m.facts.first(reportedCost) {
		level = slog.LevelWarn
	}
	p.Logger(body).Log(context.Background(), level, "Processing the object is expensive for the operator.",
		"seconds", c.time.Seconds(), "size", body.Size(), "memory", c.memory)
}

// footprint estimates the memory that decoded JSON takes.
func footprint(v any) int {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return 0
		}
		size := 48 // the map itself
		if len(v) > 0 {
			size += 40 * max(8, len(v)) // it grows by groups of eight
		}
		for key, item := range v {
			size += len(key) + footprint(item)
		}
		return size
	case []any:
		size := 24
		for _, item := range v {
			size += 16 + footprint(item)
		}
		return size
	case string:
		return 16 + len(v)
	case int64, float64:
		return 8
	}
	return 0
}
