// Package kube is the only code that talks to the Kubernetes API: requests,
// lists, watches, discovery, authentication, retries and limits.
//
// It uses net/http on the transports and credentials that client-go
// configures, and keeps objects as the bytes they came in. Requests share
// HTTP/2 connections with health checks. Every watch has an HTTP/1.1
// connection of its own, because a server closes watches that share one with
// many writes.
package kube

import (
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/jitter"
)

// Options say how a [Client] behaves. Begin with [DefaultOptions]: here zero
// means zero, not the default.
type Options struct {
	// UserAgent names the program to the server. If empty, the name in the
	// rest.Config is used, or client-go's default one.
	UserAgent string

	// RequestTimeout is how long one attempt of a request may take in all. For
	// lists it limits the silence instead, as their consumer may be slow; for
	// watches the time until the answer begins. 30 s; 0 is no limit.
	RequestTimeout time.Duration

	// ConnectTimeout limits the time to establish a connection. 10 s; 0 is no
	// limit.
	ConnectTimeout time.Duration

	// IgnoreProxyVariables makes HTTPS_PROXY and the like not count; a proxy in
	// the rest.Config does anyway. false.
	IgnoreProxyVariables bool

	// Backoffs are the pauses between attempts of one request; when they run
	// out, the last error is the answer. They start anew for each request and
	// may be endless. Long ones are cut short when the server answers others
	// again. 1, 1, 2, 3, 5, 8, 13, 21 s; nil is no retries.
	Backoffs iter.Seq[time.Duration]

	// Jitter shortens the framework's own retry delays, those of Backoffs included, so
	// that several processes do not retry at the same instants. A Retry-After of the
	// server is never shortened. nil means exact delays.
	Jitter jitter.Source

	// EnforceRetryAfter makes the pause that the server asks for replace that
	// of Backoffs, also when it is shorter. Otherwise the longer one is made.
	EnforceRetryAfter bool

	// InFlight limits the requests under way at the same time; watches do not
	// count.
	InFlight InFlight

	// Log gets failed attempts and refused credentials. Of failed attempts, one line a
	// minute is ERROR for each kind of failure; the others are DEBUG. slog.Default.
	Log *slog.Logger

	// Observe, if set, is told of every attempt of a request, for metrics. It
	// is called concurrently and must be quick.
	Observe func(Observation)

	// Unauthorized, if set, is told when the server certainly refuses the
	// credentials (the error) and when it accepts some again (nil), with the
	// configuration that they were given in. It must be quick and must not use
	// the client.
	Unauthorized func(cfg *rest.Config, err error)

	// ManagedFields keeps metadata.managedFields in the objects that are read.
	// Default: false, because they often make up half of an object.
	ManagedFields bool

	// Gate, if set, is asked before every attempt of a write: its error refuses
	// the write without sending it, as a [GatedError]; else the attempt may
	// take until the time, if that is not zero. It is called concurrently and
	// must be quick.
	Gate func() (until time.Time, err error)
}

// DefaultOptions are the options with the defaults named at the fields.
func DefaultOptions() Options {
	const s = time.Second
	return Options{
		RequestTimeout: 30 * s,
		ConnectTimeout: 10 * s,
		Backoffs:       slices.Values([]time.Duration{1 * s, 1 * s, 2 * s, 3 * s, 5 * s, 8 * s, 13 * s, 21 * s}),
		InFlight:       InFlight{Start: 32, Min: 1, Max: 256},
		Log:            slog.Default(),
	}
}

// Observation is one attempt of a request.
type Observation struct {
	Verb     string                      // get, list, watch, create, patch, delete, discover
	Resource schema.GroupVersionResource // empty for discovery
	Code     int                         // of the answer; 0 if there was none
	Duration time.Duration               // until the answer was read; of lists and watches, until it began
}

// Client talks to one cluster. It is safe for concurrent use.
type Client struct {
	opts   Options
	limit  *limiter // of requests in flight; the shared one, unless capacity is reserved
	shared *shared
}

// shared is what clients have in common that were derived from one another.
type shared struct {
	opts     Options    // of the client that all come from
	using    sync.Mutex // of those who replace the connections
	conns    atomic.Pointer[conns]
	watches  openWatches
	auth     *authState
	recovery recovery
	outages  Outages
	answers  atomic.Uint64 // responses of any kind, counted
	buffers  sync.Pool
	skipped  skipped
}

// NewClient makes a client of a client-go configuration, of which only the
// server, the credentials, the proxy, the dialler and the transport wrappers
// count. With a Transport in it, everything goes through that.
func NewClient(cfg *rest.Config, o Options) (*Client, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &Client{opts: o, limit: newLimiter(o.InFlight), shared: &shared{
		opts: o,
		auth: &authState{log: o.Log, notify: o.Unauthorized},
	}}
	if err := c.Use(cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// Use replaces server and credentials. Requests that wait because the former
// ones were refused go on at once; open watches end with [ErrReplaced].
func (c *Client) Use(cfg *rest.Config) error {
	fresh, err := connect(cfg, c.shared.opts)
	if err != nil {
		return fmt.Errorf("configure the connection to %s: %w", cfg.Host, err)
	}
	c.shared.using.Lock()
	defer c.shared.using.Unlock()
	old := c.shared.conns.Load()
	if old != nil {
		fresh.generation = old.generation + 1
	}
	c.shared.conns.Store(fresh)
	if old != nil {
		old.retire()
		c.shared.watches.replace(fresh.generation)
	}
	return nil
}

// Load returns how many requests may be in flight at the same time, how many are,
// and how many wait. Watches and clients with reserved capacity are not counted.
func (c *Client) Load() (limit float64, inFlight, waiting int) { return c.limit.load() }

// Derive makes a client with some options changed. It shares server and
// credentials, connections and the limit of requests in flight with the one it
// comes from; what was said about those in the options cannot be changed. See
// [Client.Reserved] for a limit of its own.
func (c *Client) Derive(change func(*Options)) *Client {
	derived := *c
	change(&derived.opts)
	return &derived
}

// Jitter returns the source of [Options.Jitter], for retries of the client's users.
func (c *Client) Jitter() jitter.Source { return c.opts.Jitter }

// WithBackoffs derives a client that retries differently.
func (c *Client) WithBackoffs(b iter.Seq[time.Duration]) *Client {
	return c.Derive(func(o *Options) { o.Backoffs = b })
}

// Ungated derives a client whose writes do not ask the gate: for what must be
// written to open it, and for what does no harm.
func (c *Client) Ungated() *Client {
	return c.Derive(func(o *Options) { o.Gate = nil })
}

// Reserved derives a client with capacity of its own: up to n of its requests,
// and of clients derived from it, are in flight at the same time, however many
// requests of other clients wait. It is for the few small requests that must not
// be late, such as renewals of a lease.
func (c *Client) Reserved(n int) *Client {
	derived := *c
	derived.limit = newLimiter(InFlight{Start: n, Min: n, Max: n})
	return &derived
}

// Host is the URL of the API server, for messages.
func (c *Client) Host() string { return c.shared.conns.Load().base.String() }

// Answers counts the responses of the server, whatever they say. Two equal values
// mean that it has not answered anything in between.
func (c *Client) Answers() uint64 { return c.shared.answers.Load() }

// Outages returns what limits the client's log lines about failures of the API
// server. Other packages share it, so that an outage is one line a minute in all.
func (c *Client) Outages() *Outages { return &c.shared.outages }

// Close closes the connections that are not in use.
//
// A request that was canceled just now may still hold its connection, so idle
// connections are closed again a moment later.
func (c *Client) Close() {
	conns := c.shared.conns.Load()
	conns.closeIdle()
	time.AfterFunc(time.Second, conns.closeIdle)
}
