package call

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// logLine logs one line of a program. A line that is a JSON object keeps its level,
// message and attributes.
func logLine(log *slog.Logger, line string) {
	if strings.HasPrefix(line, "{") {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil {
			logFields(log, fields)
			return
		}
	}
	log.Info(line)
}

func logFields(log *slog.Logger, fields map[string]any) {
	take := func(names ...string) string {
		for _, name := range names {
			if s, ok := fields[name].(string); ok {
				delete(fields, name)
				return s
			}
		}
		return ""
	}
	level := slog.LevelInfo
	switch strings.ToLower(take("level", "severity", "lvl")) {
	case "debug", "trace":
		level = slog.LevelDebug
	case "warn", "warning":
		level = slog.LevelWarn
	case "error", "err", "critical", "fatal":
		level = slog.LevelError
	}
	message := take("msg", "message")
	take("time", "timestamp", "ts")
	var attrs []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, slog.Any(key, fields[key]))
	}
	log.LogAttrs(context.Background(), level, message, attrs...)
}
