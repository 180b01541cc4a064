package owned

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/kind"
)

// schemaSource returns children whose schema is read within a second.
func schemaSource(reads *atomic.Int32, fails func(read int32) error) *Children {
	return New(Config{Log: slog.New(slog.DiscardHandler), Has: func(ctx context.Context, _ kind.Info, _ ...[]string) ([]bool, error) {
		n := reads.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := fails(n); err != nil {
			return nil, err
		}
		return []bool{true, false}, nil
	}})
}

// ask asks for the conditions of a resource from many goroutines. It returns the number of
// those that got them.
func ask(c *Children, contexts ...context.Context) (got int32) {
	var count atomic.Int32
	var wg sync.WaitGroup
	for _, ctx := range contexts {
		wg.Go(func() {
			if conditions, observed := c.Conditions(ctx, kind.Info{Version: "v1", Plural: "widgets"}); conditions && !observed {
				count.Add(1)
			}
		})
		synctest.Wait()
	}
	wg.Wait()
	return count.Load()
}

func TestObjectsThatStartTogetherReadTheSchemaOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		c := schemaSource(&reads, func(int32) error { return nil })
		contexts := make([]context.Context, 64)
		for i := range contexts {
			contexts[i] = t.Context()
		}
		if got := ask(c, contexts...); got != 64 || reads.Load() != 1 {
			t.Errorf("%d of 64 callers got the answer of %d requests", got, reads.Load())
		}
		if got := ask(c, contexts...); got != 64 || reads.Load() != 1 {
			t.Errorf("later, %d of 64 callers got the answer of %d requests", got, reads.Load())
		}
	})
}

func TestASchemaThatCannotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		c := schemaSource(&reads, func(n int32) error {
			if n == 1 {
				return errors.New("unavailable")
			}
			return nil
		})
		if got := ask(c, t.Context(), t.Context()); got != 0 || reads.Load() != 1 {
			t.Errorf("%d callers got an answer from %d failed requests", got, reads.Load())
		}
		if got := ask(c, t.Context(), t.Context()); got != 2 || reads.Load() != 2 {
			t.Errorf("%d of 2 callers got the answer of request %d", got, reads.Load())
		}
	})
}

func TestACanceledCallerDoesNotTakeTheSchemaFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		c := schemaSource(&reads, func(int32) error { return nil })
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got := ask(c, short, t.Context(), t.Context()); got != 2 || reads.Load() != 2 {
			t.Errorf("%d of 2 callers got the answer of %d requests", got, reads.Load())
		}
	})
}
