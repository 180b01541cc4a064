package kube

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// conns are the connections to one server with one set of credentials: one transport
// for requests, one for watches, one for watches that share connections, and one for
// probes.
type conns struct {
	given      *rest.Config // by the caller of Use
	generation int          // number of earlier sets of credentials
	files      files        // with the credentials
	outage     atomic.Pointer[outage]

	cfg      *rest.Config // completed copy
	base     *url.URL
	requests http.RoundTripper
	watches  http.RoundTripper
	joint    http.RoundTripper
	probes   http.RoundTripper

	// traced is true if the transports are net/http's, which report when a request got
	// a connection.
	traced   bool
	replaced chan struct{} // closed when other connections replace these
	idlers   []*http.Transport
}

const (
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	pingAfter        = 5 * time.Second // of silence on an HTTP/2 connection
	pingTimeout      = 5 * time.Second
	watchReadBuffer  = 64 << 10

	// requestIdleTimeout is the time after which an unused connection for requests is closed.
	// API servers close them after 90 s: a write that is sent at that moment would have an
	// unknown outcome.
	requestIdleTimeout = 30 * time.Second

	// unacknowledged is the time after which a connection is closed if the peer does not
	// confirm data that was sent. Otherwise the kernel sends it again for 15 minutes.
	unacknowledged = 9 * time.Second

	// suspectAfter is the time without a response after which unused connections may be dead
	// as well.
	suspectAfter = 2 * time.Second

	// sessionsKept is the number of servers whose TLS sessions are resumed. A configuration has
	// one, and perhaps a proxy. Each concurrent request has a connection, and a handshake that
	// resumes a session verifies no certificates and signs nothing.
	sessionsKept = 4

	// jointWindow is the number of bytes that a server may send on a watch of a shared
	// connection before we read them. The connection as a whole has no such limit, so a
	// slow reader delays no other watch.
	jointWindow = 64 << 10

	// maxOpenings limits the watches that are being opened on shared connections at the
	// same time. Without it, each watch of a burst would make a connection, because
	// there is none to share yet.
	maxOpenings = 8
)

// keepAlive lets the kernel detect a dead peer on a silent connection within 9 s.
// Requests and most watches use HTTP/1.1, which has no pings.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 2}
}

func connect(cfg *rest.Config, o Options) (*conns, error) {
	given := cfg
	cfg = rest.CopyConfig(cfg)
	if o.UserAgent != "" {
		cfg.UserAgent = o.UserAgent
	} else if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if o.Wrap != nil {
		cfg.Wrap(o.Wrap)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	c := &conns{given: given, cfg: cfg, base: base, replaced: make(chan struct{})}
	if cfg.Transport != nil {
		rt, err := rest.TransportFor(cfg)
		c.requests, c.watches, c.joint, c.probes = rt, rt, rt, rt
		return c, err
	}

	// Note the files first: a change during the setup is then detected later.
	c.files.note(cfg)
	sessions := tls.NewLRUClientSessionCache(sessionsKept)
	requests, rt, err := newTransport(cfg, o, sessions, responsePace())
	if err != nil {
		return nil, err
	}
	// Keep one idle connection per concurrent request. Otherwise each request of a burst
	// costs a handshake.
	requests.MaxIdleConnsPerHost = max(o.InFlight.Max, http.DefaultMaxIdleConnsPerHost)
	requests.IdleConnTimeout = requestIdleTimeout
	c.requests = rt

	watches, rt, err := newTransport(cfg, o, sessions, watchPace())
	if err != nil {
		return nil, err
	}
	watches.ReadBufferSize = watchReadBuffer
	c.watches = rt

	joint, rt, err := newTransport(cfg, o, sessions, watchPace())
	if err != nil {
		return nil, err
	}
	multiplex(joint)
	c.joint = rt

	// Probes of many watches share a connection. Its pings detect that the connection is dead,
	// which is the question that a probe must answer about its watch.
	probes, rt, err := newTransport(cfg, o, sessions, watchPace())
	if err != nil {
		return nil, err
	}
	multiplex(probes)
	c.probes = rt

	c.traced = true
	c.idlers = []*http.Transport{requests, watches, joint, probes}
	return c, nil
}

// multiplex lets watches share HTTP/2 connections.
func multiplex(t *http.Transport) {
	t.Protocols.SetHTTP2(true)
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: jointWindow}
}

// newTransport returns an HTTP/1.1 transport for further adjustment, and the same with
// client-go's wrappers for credentials, impersonation and the user agent. sessions are the
// TLS sessions that its connections may resume. p is their pace.
func newTransport(cfg *rest.Config, o Options, sessions tls.ClientSessionCache, p pace) (*http.Transport, http.RoundTripper, error) {
	// Each transport needs a new configuration: exec plugins install their own dialer
	// in it, to close connections when certificates rotate.
	tc, err := cfg.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, nil, err
	}
	if tc.TLS.ReloadTLSFiles {
		// Otherwise a bad pair is found only when a server requests a certificate.
		if _, err := tls.LoadX509KeyPair(tc.TLS.CertFile, tc.TLS.KeyFile); err != nil {
			return nil, nil, err
		}
	}
	// A resumed session keeps the client certificate that it began with. So it must not outlive
	// a certificate that is read again from files or from a plugin.
	if tlsConfig != nil && !tc.TLS.ReloadTLSFiles && !tc.HasCertCallback() {
		tlsConfig.ClientSessionCache = sessions
	}
	dial := dialTCP
	if tc.DialHolder != nil {
		dial = tc.DialHolder.Dial
	}
	proxy := http.ProxyFromEnvironment
	if o.IgnoreProxyVariables {
		proxy = nil
	}
	if tc.Proxy != nil {
		proxy = tc.Proxy
	}
	t := &http.Transport{
		Proxy:               proxy,
		DialContext:         gatherAll(dialWithin(o.ConnectTimeout, dial), p),
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: handshakeTimeout,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true, // see inflating
		Protocols:           new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	var rt http.RoundTripper = t
	if !tc.DisableCompression {
		rt = inflating{t}
	}
	rt, err = transport.HTTPWrappersForConfig(tc, rt)
	return t, rt, err
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialTCP makes a connection on which the kernel detects a dead peer.
func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAliveConfig: keepAlive()}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		limitUnacknowledged(tcp, unacknowledged)
	}
	return conn, err
}

func dialWithin(limit time.Duration, dial dialFunc) dialFunc {
	if limit <= 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, address)
	}
}

// retire releases requests that wait for other connections. Requests in flight continue.
func (c *conns) retire() {
	close(c.replaced)
	c.closeIdle()
}

func (c *conns) isReplaced() bool {
	select {
	case <-c.replaced:
		return true
	default:
		return false
	}
}

// leave replaces connections on which a response timed out: they, or the server behind
// them, may be dead.
func (c *Client) leave(suspect *conns) {
	if !suspect.traced {
		return // a custom transport
	}
	c.shared.using.Lock()
	defer c.shared.using.Unlock()
	if suspect.isReplaced() {
		return
	}
	fresh, err := connect(suspect.given, c.shared.opts)
	if err != nil {
		return // the old connections are better than none
	}
	fresh.generation = suspect.generation // the credentials are the same
	c.shared.conns.Store(fresh)
	suspect.retire()
}

// CloseIdle closes the connections that are not in use. Call it if another connection turned
// out to be dead: these may be dead as well.
func (c *Client) CloseIdle() { c.shared.conns.Load().closeIdle() }

func (c *conns) closeIdle() {
	for _, t := range c.idlers {
		t.CloseIdleConnections()
	}
}
