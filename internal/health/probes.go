package health

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/internal/panics"
)

// Probes calls the probes of an operator and returns their results by id. When
// ctx is done it should return soon, with what it has and an error that names
// the probe that was slow.
type Probes func(ctx context.Context) (results map[string]any, err error)

// collector calls the probes for those who ask: once for all who ask at the
// same time, and not again while the results are young.
type collector struct {
	probes Probes
	limit  time.Duration // for one collection
	maxAge time.Duration // of results

	ask chan *round // what run is to collect, one at a time

	mu      sync.Mutex
	current *round // being collected
	last    *round // the last one that went well
}

// round is one collection. All but began is written before done is closed.
type round struct {
	began, ended time.Time
	done         chan struct{}
	body         []byte
	err          error
}

func newCollector(probes Probes, limit, maxAge time.Duration) *collector {
	if probes == nil {
		probes = func(context.Context) (map[string]any, error) { return nil, nil }
	}
	return &collector{probes: probes, limit: limit, maxAge: maxAge, ask: make(chan *round, 1)}
}

// heed is how long probes have to return after their limit.
const heed = time.Second

// get returns the results as JSON. It waits for the probes, but not for longer
// than ctx, nor for much longer than their limit.
func (c *collector) get(ctx context.Context) ([]byte, error) {
	r := c.join()
	late := time.NewTimer(time.Until(r.began.Add(c.limit + heed)))
	defer late.Stop()
	select {
	case <-r.done:
		return r.body, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-late.C:
		return nil, fmt.Errorf("the probes have been running for %s, do not heed their limit of %s, and are not called again before they return",
			words(time.Since(r.began)), c.limit)
	}
}

// join finds the round to wait for, and begins one if there is none.
func (c *collector) join() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && time.Since(c.last.ended) < c.maxAge {
		return c.last
	}
	if c.current == nil {
		c.current = &round{began: time.Now(), done: make(chan struct{})}
		c.ask <- c.current // there is room, since there is one round at a time
	}
	return c.current
}

// run collects when asked, until ctx is done.
func (c *collector) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-c.ask:
			c.collect(ctx, r)
		}
	}
}

func (c *collector) collect(ctx context.Context, r *round) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	results, err := c.call(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the probes were not done within %s%s: %w", c.limit, finished(results), err)
	}
	if err == nil {
		r.body, err = encode(results)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.err, r.ended = err, time.Now()
	c.current = nil
	if err == nil {
		c.last = r // failures are not kept: the next one who asks may have more luck
	}
	close(r.done)
}

// call makes an error of a panic of a user's probe.
func (c *collector) call(ctx context.Context) (results map[string]any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a probe panicked: %v\n%s", v, panics.Stack())
		}
	}()
	return c.probes(ctx)
}

func finished(results map[string]any) string {
	if len(results) == 0 {
		return ""
	}
	return " (finished are " + strings.Join(slices.Sorted(maps.Keys(results)), ", ") + ")"
}

// encode makes one JSON object of results, without those that are null.
func encode(results map[string]any) ([]byte, error) {
	raw := map[string]json.RawMessage{}
	for id, result := range results {
		one, err := json.Marshal(result)
		if err != nil {
			return nil, fmt.Errorf("the result of probe %q cannot be told in JSON: %w", id, err)
		}
		if !bytes.Equal(one, []byte("null")) {
			raw[id] = one
		}
	}
	return json.Marshal(raw)
}
