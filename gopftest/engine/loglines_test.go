package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

// leveled formats log lines with their levels in front.
func (l *lines) leveled() *slog.Logger {
	return slog.New(logs.New(l, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
}

// count returns the number of lines that contain all of the words.
func (l *lines) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

func TestAnOutageWithManyObjectsLogsFewLines(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		const objects = 60
		var log lines
		var called atomic.Int32
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.SetResult("done")
			called.Add(1)
			return nil
		})
		x.Timer("beat", 10*time.Second, func(_ context.Context, tm *gopf.Tick[*Example]) error {
			tm.Patch.Set("status.beat", time.Now().Unix())
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(log.leveled()))
		settle()
		const minutes = 5
		c.Fault(gopftest.Requests("", "").Where(ours).During(minutes*time.Minute), gopftest.Fail(503))
		for i := range objects {
			c.Create(t, example(fmt.Sprintf("x%d", i), "a"))
		}
		time.Sleep((minutes + 2) * time.Minute)
		if n := called.Load(); n != objects {
			t.Errorf("the handler was called %d times", n)
		}
		if n := log.count("[ERROR "); n == 0 || n > minutes+2 {
			t.Errorf("%d ERROR lines in an outage of %d minutes", n, minutes)
		}
		if n := log.count("[ERROR ", "omitted="); n < minutes-1 {
			t.Errorf("%d lines have a count", n)
		}
		if n := log.count("Throttling is over"); n > 3 {
			t.Errorf("%d lines about the end of the outage", n)
		}
	})
}

func TestSuccessesWithoutChangesAreLoggedAtDebugLevel(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnEvent("look", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
		x.OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x.Timer("idle", time.Minute, func(context.Context, *gopf.Tick[*Example]) error { return nil })
		x.Timer("busy", time.Minute, func(_ context.Context, tm *gopf.Tick[*Example]) error {
			tm.Patch.Set("status.beat", tm.Retry)
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(log.leveled()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(5 * time.Minute)
		for id, level := range map[string]string{"look": "DEBUG", "make": "INFO", "idle": "DEBUG", "busy": "INFO"} {
			all, right := log.count("'"+id+"' succeeded."), log.count("'"+id+"' succeeded.", "["+level)
			if all == 0 || all != right {
				t.Errorf("%s: %d of %d lines are %s", id, right, all, level)
			}
		}
	})
}

func TestAPanicLogsTheFramesOfTheUserFirst(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { panic("broken\nby a \x1b[31mname") })
		gopftest.Start(t, op, c, gopf.Log(log.leveled()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		if !log.has(`panic: broken\nby a \x1b[31mname`) {
			t.Error("the text of the panic is not escaped")
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		for _, line := range log.text {
			if _, stack, found := strings.Cut(line, "[running"); found {
				if frames := strings.Split(stack, "\n"); len(frames) < 3 || !strings.Contains(frames[2], "loglines_test.go") {
					t.Errorf("the stack is %s", stack)
				}
				return
			}
		}
		t.Error("there is no stack")
	})
}
