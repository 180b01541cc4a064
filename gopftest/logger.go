package gopftest

import (
	"log/slog"
	"testing"

	"gopf.dev/gopf/logs"
)

// logger writes to the log of the test, which shows it only if the test fails
// or is run with -v.
func logger(t testing.TB) *slog.Logger {
	return slog.New(logs.New(t.Output(), logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
}
