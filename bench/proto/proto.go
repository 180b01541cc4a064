// Package proto is the protocol between measured operators and the harness. The harness
// writes a command as a line to the operator's standard input, and reads the response as a
// line of JSON from its standard output. The operator stops at the end of its input.
package proto

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

// Stats are the statistics of an operator about its own work.
type Stats struct {
	Calls     int     `json:"calls"`     // of handlers
	Seen      int     `json:"seen"`      // objects that were looked at, by programs that know
	First     int64   `json:"first"`     // call, in Unix nanoseconds; 0 for none
	Last      int64   `json:"last"`      // the same
	LastSeen  int64   `json:"lastSeen"`  // when the last object was looked at
	Latencies []int64 `json:"latencies"` // from the stamp of an object to the call, in nanoseconds
	Mallocs   uint64  `json:"mallocs"`   // since the start
	Allocated uint64  `json:"allocated"` // bytes since the start
	Error     string  `json:"error,omitempty"`
}

// Counter counts calls of handlers. It is safe for concurrent use.
type Counter struct {
	mu    sync.Mutex
	stats Stats
	once  map[string]bool // the uids of objects that CalledOnce has counted
}

// CalledOnce records the first call for the object with the uid. Others count as objects
// that were seen again.
func (c *Counter) CalledOnce(uid string) {
	c.mu.Lock()
	c.stats.Seen++
	known := c.once[uid]
	if c.once == nil {
		c.once = map[string]bool{}
	}
	c.once[uid] = true
	c.mu.Unlock()
	if !known {
		c.Called(0)
	}
}

// Called records a call for an object with the stamp. 0 means no stamp.
func (c *Counter) Called(stamp int64) {
	now := time.Now().UnixNano()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Calls++
	if c.stats.First == 0 {
		c.stats.First = now
	}
	c.stats.Last = now
	if stamp != 0 {
		c.stats.Latencies = append(c.stats.Latencies, now-stamp)
	}
}

// Late records the delay of a call that was due at a certain time.
func (c *Counter) Late(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Calls++
	c.stats.Latencies = append(c.stats.Latencies, int64(by))
}

// Seen records that an object was seen.
func (c *Counter) Seen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Seen++
	c.stats.LastSeen = time.Now().UnixNano()
}

// Fail records an error, which the harness reports.
func (c *Counter) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Error = err.Error()
}

func (c *Counter) take() Stats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Mallocs, s.Allocated = m.Mallocs, m.TotalAlloc
	return s
}

// counts returns the stats without the expensive ones.
func (c *Counter) counts() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Latencies = nil
	return s
}

func (c *Counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats = Stats{}
}

// Serve responds to commands until the input ends, and then cancels the returned context.
// more are additional commands of the program.
func Serve(c *Counter, more map[string]func() any) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		answers := json.NewEncoder(os.Stdout)
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			command, argument, _ := strings.Cut(lines.Text(), " ")
			_ = answers.Encode(c.answer(command, argument, more)) // the harness may be gone
		}
	}()
	return ctx
}

func (c *Counter) answer(command, argument string, more map[string]func() any) any {
	switch command {
	case "stats":
		return c.take()
	case "counts":
		return c.counts()
	case "reset":
		c.reset()
	case "gc":
		debug.FreeOSMemory()
	case "cpu":
		return profile(argument)
	case "heap":
		return heap(argument)
	default:
		if fn := more[command]; fn != nil {
			return fn()
		}
		return Stats{Error: "unknown command " + command}
	}
	return Stats{}
}

// profile starts a CPU profile into the file. An empty path stops it.
func profile(path string) any {
	if path == "" {
		pprof.StopCPUProfile()
		return Stats{}
	}
	file, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(file) // the file stays open until the process ends
	}
	return failed(err)
}

func heap(path string) any {
	file, err := os.Create(path)
	if err != nil {
		return failed(err)
	}
	defer file.Close()
	return failed(pprof.Lookup("allocs").WriteTo(file, 0))
}

func failed(err error) Stats {
	if err == nil {
		return Stats{}
	}
	return Stats{Error: err.Error()}
}

// Client is the side of the harness.
type Client struct {
	in  io.Writer
	out *bufio.Reader
}

// NewClient returns a client for the pipes of a process.
func NewClient(in io.Writer, out io.Reader) *Client {
	return &Client{in, bufio.NewReaderSize(out, 1<<20)}
}

// Ask sends a command and returns the response.
func (c *Client) Ask(command string) (s Stats, err error) {
	if _, err = fmt.Fprintln(c.in, command); err != nil {
		return s, fmt.Errorf("send %q: %w", command, err)
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return s, fmt.Errorf("await the answer to %q: %w", command, err)
	}
	if err = json.Unmarshal(line, &s); err != nil {
		return s, fmt.Errorf("read the answer to %q: %w", command, err)
	}
	if s.Error != "" {
		return s, fmt.Errorf("%s: %s", command, s.Error)
	}
	return s, nil
}
