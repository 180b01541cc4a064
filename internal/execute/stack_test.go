package execute

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

func brokenByAValue()                  { panic("broken") }
func brokenByTheRuntime()              { var m map[string]int; m["x"]++ } //nolint:staticcheck // the panic is intended
func brokenByNil()                     { var p *Attempt; p.ID = "x" }
func brokenAgain()                     { defer func() { panic(recover()) }(); brokenByAValue() }
func brokenWith(fn func()) (err error) { return Attempt{ID: "h", Call: calling(fn)}.panicking() }

func calling(fn func()) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { fn(); return nil, nil }
}

func (a Attempt) panicking() error {
	a.Log = slog.New(slog.DiscardHandler)
	_, err := a.call(context.Background())
	return err
}

func TestPanicStackStartsWithTheUsersFrames(t *testing.T) {
	for name, fn := range map[string]func(){
		"brokenByAValue": brokenByAValue, "brokenByTheRuntime": brokenByTheRuntime, "brokenByNil": brokenByNil,
		"brokenAgain": brokenAgain,
	} {
		panicked, ok := brokenWith(fn).(*PanicError)
		if !ok {
			t.Fatalf("%s: no panic", name)
		}
		lines := strings.Split(string(panicked.Stack), "\n")
		if len(lines) < 3 || !strings.HasPrefix(lines[0], "goroutine ") || !strings.Contains(lines[1], name) {
			t.Errorf("%s: the stack is\n%s", name, panicked.Stack)
		}
	}
}
