// Package kube is the only code that talks to the Kubernetes API: requests,
// lists, watches, discovery, authentication, retries and limits.
//
// It uses net/http on the transports and credentials that client-go configures, and
// keeps objects as the bytes that were received. Requests use HTTP/1.1, with a connection
// for each concurrent request, which takes less CPU time than HTTP/2. A watch has its own
// HTTP/1.1 connection. If there are many watches, they share HTTP/2 connections that carry
// nothing else. Probes share another one.
package kube

import (
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/jitter"
)

// Options configure a [Client]. Start with [DefaultOptions]: a zero field means zero,
// not the default.
type Options struct {
	// UserAgent identifies the program to the server. Default: the name in the
	// rest.Config, or client-go's.
	UserAgent string

	// RequestTimeout limits one attempt of a request, including reading the response.
	// For lists it limits the silence between reads instead, because their consumer may
	// be slow; for watches, the time until the response starts. Default: 30s. 0 means
	// no limit.
	RequestTimeout time.Duration

	// ConnectTimeout limits the time to establish a connection. Default: 10s. 0 means
	// no limit.
	ConnectTimeout time.Duration

	// IgnoreProxyVariables ignores HTTPS_PROXY and related variables. A proxy in the
	// rest.Config is always used. Default: false.
	IgnoreProxyVariables bool

	// Backoffs are the pauses between the attempts of one request. When they run out,
	// the last error is returned. The sequence restarts for each request and may be
	// infinite. Long pauses are cut short when the server responds to other requests
	// again. Default: 1, 1, 2, 3, 5, 8, 13, 21 s. nil means no retries.
	Backoffs iter.Seq[time.Duration]

	// Jitter shortens the client's retry delays, including those of Backoffs. It keeps
	// processes from retrying at the same time. A Retry-After of the server is never
	// shortened. nil means exact delays.
	Jitter jitter.Source

	// EnforceRetryAfter uses the server's Retry-After instead of Backoffs, even if it
	// is shorter. Default: false, the longer of the two is used.
	EnforceRetryAfter bool

	// InFlight limits concurrent requests. Watches do not count.
	InFlight InFlight

	// Log receives failed attempts and rejected credentials. For each kind of failure,
	// one line per minute is logged at ERROR and the rest at DEBUG. Default:
	// slog.Default().
	Log *slog.Logger

	// Observe is called after every attempt of a request, for metrics. It is called
	// concurrently and must not block. May be nil.
	Observe func(Observation)

	// Unauthorized is called with the error when the server is known to reject the
	// credentials, and with nil when it accepts credentials again. cfg is the
	// configuration that contained them. It must not block and must not use the client.
	// May be nil.
	Unauthorized func(cfg *rest.Config, err error)

	// Wrap returns the transport for requests of this client, and of clients that are made
	// from its configuration, around another one. May be nil.
	Wrap func(http.RoundTripper) http.RoundTripper

	// ManagedFields keeps metadata.managedFields in the objects that are read.
	// Default: false, because they are often half of an object.
	ManagedFields bool

	// DryRun makes the API server validate all writes without storing them. Default: false.
	DryRun bool

	// Gate is called before every attempt of a write. If it returns an error, the write
	// is not sent and fails with a [GatedError]. Otherwise the attempt may take until
	// the returned time; the zero time means no limit. It is called concurrently and
	// must not block. May be nil.
	Gate func() (until time.Time, err error)
}

// DefaultOptions returns the options with the defaults that are documented at the fields.
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

// Observation describes one attempt of a request.
type Observation struct {
	Verb     string                      // get, list, watch, create, patch, delete, discover
	Resource schema.GroupVersionResource // empty for discovery
	Code     int                         // HTTP status; 0 if there was no response
	Duration time.Duration               // until the response was read; for lists and watches, until it started
}

// Client is a client of one cluster. It is safe for concurrent use.
type Client struct {
	opts   Options
	limit  *limiter // of requests in flight; shared, unless capacity is reserved
	shared *shared
}

// shared is the state that a client shares with all clients derived from it.
type shared struct {
	opts     Options    // of the original client
	using    sync.Mutex // held while the connections are replaced
	conns    atomic.Pointer[conns]
	watches  openWatches
	openings *limiter // of watches on shared connections, until their responses start
	large    *limiter // of large responses, while they are read as a whole
	auth     *authState
	recovery recovery
	outages  Outages
	answers  atomic.Uint64 // number of responses of any kind
	buffers  sync.Pool
	skipped  skipped
}

// NewClient returns a client for a client-go configuration. It uses only the server,
// the credentials, the proxy, the dialer and the transport wrappers of cfg. If cfg has
// a Transport, all requests go through it.
func NewClient(cfg *rest.Config, o Options) (*Client, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &Client{opts: o, limit: newLimiter(o.InFlight), shared: &shared{
		opts: o,
		auth: &authState{log: o.Log, notify: o.Unauthorized},

		openings: newLimiter(InFlight{Start: maxOpenings, Min: maxOpenings, Max: maxOpenings}),
		large:    newLimiter(InFlight{Start: maxLarge, Min: maxLarge, Max: maxLarge}),
	}}
	c.shared.large.strict = true // it limits memory
	if err := c.Use(cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// Use replaces the server and the credentials. Requests that wait because the previous
// credentials were rejected continue at once. Open watches end with [ErrReplaced].
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

// Load returns the limit of requests in flight, their number, and the number of waiting
// requests. Watches and clients with reserved capacity do not count.
func (c *Client) Load() (limit float64, inFlight, waiting int) { return c.limit.load() }

// Derive returns a client with changed options. It shares the server, the credentials,
// the connections and the limit of requests in flight with c; changes to the options
// that configure those have no effect. See [Client.Reserved] for a separate limit.
func (c *Client) Derive(change func(*Options)) *Client {
	derived := *c
	change(&derived.opts)
	return &derived
}

// Jitter returns the source of [Options.Jitter], for retries of the client's users.
func (c *Client) Jitter() jitter.Source { return c.opts.Jitter }

// WithBackoffs returns a derived client with other backoffs.
func (c *Client) WithBackoffs(b iter.Seq[time.Duration]) *Client {
	return c.Derive(func(o *Options) { o.Backoffs = b })
}

// Ungated returns a derived client whose writes skip the gate. It is for the writes
// that open the gate, and for harmless ones.
func (c *Client) Ungated() *Client {
	return c.Derive(func(o *Options) { o.Gate = nil })
}

// Reserved returns a derived client with separate capacity: it and the clients derived
// from it have up to n requests in flight, however many requests of other clients wait. If these are
// slow, namespaces without a request can have up to n more.
// It is for the few small requests that must not be late, such as lease renewals.
func (c *Client) Reserved(n int) *Client {
	derived := *c
	derived.limit = newLimiter(InFlight{Start: n, Min: n, Max: n})
	return &derived
}

// Host returns the URL of the API server, for messages.
func (c *Client) Host() string { return c.shared.conns.Load().base.String() }

// Answers returns the number of responses so far, including errors. If it is unchanged,
// the server has not responded in between.
func (c *Client) Answers() uint64 { return c.shared.answers.Load() }

// Outages returns the rate limit for log lines about failures of the API server. Other
// packages share it to keep an outage at one line per minute in total.
func (c *Client) Outages() *Outages { return &c.shared.outages }

// Close closes the connections that are not in use.
//
// A request that was just canceled may still hold its connection, so idle connections
// are closed again a second later.
func (c *Client) Close() {
	conns := c.shared.conns.Load()
	conns.closeIdle()
	time.AfterFunc(time.Second, conns.closeIdle)
}
