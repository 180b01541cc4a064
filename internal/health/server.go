package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/internal/connlimit"
)

// Config configures a [Server]. Start with [DefaultConfig]: a zero field means zero,
// not the default.
//
// Addresses are host:port. An empty host means all hosts, port 0 any free port.
// Endpoints with the same address share one listener. An endpoint without an address is
// not served.
type Config struct {
	// Liveness is the URL of Kopf's probe endpoint, as http://[host][:port][/path]. It
	// serves the results of all probes as one JSON object. As in Kopf, an empty host
	// means localhost.
	Liveness string
	// Health is the address of /livez and /readyz.
	Health string
	// Metrics is the address of /metrics.
	Metrics string
	// Debug is the address of /debug/pprof/. Profiles expose internals, so it should
	// not be reachable from other hosts.
	Debug string

	// Snapshot returns the state of the operator. It is called for every request,
	// concurrently, and must not block.
	Snapshot func() Snapshot
	// Probes are called by the Liveness endpoint, but not before the operator has
	// started. May be nil.
	Probes Probes
	// MetricsHandler serves /metrics.
	MetricsHandler http.Handler
	// Insight is the address of the page of the operator, and Page serves it: the path "/",
	// and all paths under /debug/gopf/.
	Insight string
	Page    http.Handler

	// SecureMetrics and SecureInsight serve /metrics and the page over TLS, and only requests
	// that Guard passes on. Such an endpoint shares its address only with other secure ones.
	SecureMetrics, SecureInsight bool
	TLS                          *tls.Config
	Guard                        func(http.Handler) http.Handler

	// ProbeLimit limits the duration of all probes together. Default: 30s.
	ProbeLimit time.Duration
	// ProbeAge is the time during which the results of the probes are reused. Default:
	// 10s.
	ProbeAge time.Duration
	// Grace is the time for running requests and probes to end at shutdown. Default: 1s.
	Grace time.Duration

	Log *slog.Logger // nil means no logging
}

// DefaultConfig returns the defaults that are documented at the fields. It serves
// nothing.
func DefaultConfig() Config {
	return Config{ProbeLimit: 30 * time.Second, ProbeAge: 10 * time.Second, Grace: time.Second}
}

// Limits of requests.
const (
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second // for reading; and for responding, without probes
	idleTime    = time.Minute
	headerBytes = 4 << 10 // net/http reads 4 KiB more; short fields take about 20 times their size
	tokenBytes  = 8 << 10 // the same with a bearer token

	// maxConnections is the limit of each listener. Kubelets and Prometheus use one each.
	maxConnections = 64
)

// Server serves the health of an operator. [Listen] creates it.
type Server struct {
	config Config
	probes *collector
	sites  []*site
	at     Addresses
}

// Addresses are the served addresses, with the picked ports. They are empty if not
// served.
type Addresses struct {
	Liveness               string // a URL
	Health, Metrics, Debug string
	Insight                string
}

// site is one listener with its routes.
type site struct {
	asked    string // the configured address
	listener net.Listener
	routes   routes
	secure   bool // TLS
}

// Listen opens all addresses, or none. It returns an [*AddressError] if it cannot
// listen at one of them. The caller must call either Run or Close.
func Listen(ctx context.Context, c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Snapshot == nil && c.Liveness+c.Health != "":
		return nil, errors.New("serve health: Snapshot is nil")
	case c.MetricsHandler == nil && c.Metrics != "":
		return nil, errors.New("serve metrics: MetricsHandler is nil")
	case c.Page == nil && c.Insight != "":
		return nil, errors.New("serve the page: Page is nil")
	case (c.TLS == nil || c.Guard == nil) && (c.SecureMetrics || c.SecureInsight):
		return nil, errors.New("serve secure endpoints: TLS or Guard is nil")
	}
	s := &Server{config: c, probes: newCollector(c.Probes, c.ProbeLimit, c.ProbeAge)}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.tellPorts()
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	c := s.config
	if c.Liveness != "" {
		address, path, err := probeURL(c.Liveness)
		if err != nil {
			return err
		}
		bound, err := s.serve(ctx, "the probes", address, false, map[string]http.Handler{path: probePage(c.Snapshot, s.probes)})
		if err != nil {
			return err
		}
		s.at.Liveness = "http://" + bound + path
	}
	pages := map[string]http.Handler{"/livez": livePage(c.Snapshot), "/readyz": readyPage(c.Snapshot)}
	profiles := map[string]http.Handler{profilesPath: http.HandlerFunc(serveProfiles)}
	for _, e := range []struct {
		what, address string
		secure        bool
		routes        map[string]http.Handler
		bound         *string
	}{
		{"health", c.Health, false, pages, &s.at.Health},
		{"metrics", c.Metrics, c.SecureMetrics, map[string]http.Handler{"/metrics": c.MetricsHandler}, &s.at.Metrics},
		{"profiles", c.Debug, false, profiles, &s.at.Debug},
		{"the page", c.Insight, c.SecureInsight, map[string]http.Handler{"/": c.Page, pagePath: c.Page}, &s.at.Insight},
	} {
		if e.address == "" {
			continue
		}
		var err error
		if *e.bound, err = s.serve(ctx, e.what, e.address, e.secure, e.routes); err != nil {
			return err
		}
	}
	return nil
}

// serve adds routes to an address, and listens there if no other endpoint does.
func (s *Server) serve(ctx context.Context, what, address string, secure bool, added map[string]http.Handler) (bound string, err error) {
	if err := CheckAddress(what, address); err != nil {
		return "", err
	}
	at, err := s.site(ctx, address, secure)
	if err != nil {
		return "", &AddressError{address, what, advise(err), err}
	}
	if at.secure != secure {
		return "", &AddressError{address, what, "choose another port for one of them",
			errors.New("another endpoint has this address, and only one of both is secure")}
	}
	for path, handler := range added {
		if at.routes[path] != nil {
			return "", &AddressError{address, what, "choose another port for one of them",
				fmt.Errorf("the path %s is taken by another endpoint", path)}
		}
		if secure {
			handler = s.config.Guard(handler)
		}
		at.routes[path] = handler
	}
	return at.listener.Addr().String(), nil
}

func (s *Server) site(ctx context.Context, address string, secure bool) (*site, error) {
	for _, at := range s.sites {
		if at.asked == address {
			return at, nil
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		var inner *net.OpError
		if errors.As(err, &inner) {
			err = inner.Err // the whole error repeats the address
		}
		return nil, err
	}
	at := &site{address, listener, routes{}, secure}
	s.sites = append(s.sites, at)
	return at, nil
}

// Addresses returns the served addresses.
func (s *Server) Addresses() Addresses { return s.at }

// Close closes the listeners of a server that was not run.
func (s *Server) Close() {
	for _, at := range s.sites {
		at.listener.Close()
	}
}

// tellPorts logs the picked ports, which are not in the configuration.
func (s *Server) tellPorts() {
	for _, e := range []struct{ what, asked, bound string }{
		{"health", s.config.Health, s.at.Health},
		{"metrics", s.config.Metrics, s.at.Metrics},
		{"profiles", s.config.Debug, s.at.Debug},
	} {
		if _, port, err := net.SplitHostPort(e.asked); err == nil && port == "0" {
			s.config.Log.Info("A free port was picked.", "for", e.what, "address", e.bound)
		}
	}
}

// Run serves until ctx ends, and then returns nil. If a listener fails, it returns the
// error. It leaves no goroutines behind, except requests and probes that do not end in
// time, which it logs.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.at.Liveness != "" {
		s.config.Log.Debug("Serving health status at " + s.at.Liveness)
	}
	probes := make(chan struct{})
	go func() {
		defer close(probes)
		s.probes.run(ctx)
	}()
	var serving sync.WaitGroup
	broken := make(chan error, len(s.sites))
	var servers []*http.Server
	for _, at := range s.sites {
		server := s.server(ctx, at)
		servers = append(servers, server)
		listener := (&connlimit.Connections{Max: maxConnections}).Watch(server, at.listener)
		serving.Go(func() {
			serve := server.Serve
			if at.secure {
				serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
			}
			if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
				broken <- fmt.Errorf("serve health at %s: %w", at.asked, err)
			}
		})
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel() // requests and probes
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
	defer stop()
	for _, server := range servers {
		serving.Go(func() {
			if server.Shutdown(late) != nil {
				s.config.Log.Debug("Some requests to the health endpoints did not end in time and were closed.")
				_ = server.Close() // its listeners are closed already
			}
		})
	}
	serving.Wait()
	select {
	case <-probes:
	case <-late.Done():
		s.config.Log.Warn("A probe did not return in time at shutdown and is abandoned.")
	}
	return err
}

func (s *Server) server(ctx context.Context, at *site) *http.Server {
	server := &http.Server{
		Handler:           at.routes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      s.config.ProbeLimit + requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
	}
	if at.secure {
		server.MaxHeaderBytes, server.TLSConfig = tokenBytes, s.config.TLS
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // no HTTP/2: the limits are those of connections
	}
	return server
}

// pagePath is the prefix of the paths of the page.
const pagePath = "/debug/gopf/"

// routes serves exact paths, and all profiles with one handler, and so the page. Unlike a ServeMux, it
// never redirects.
type routes map[string]http.Handler

func (r routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	handler := r[req.URL.Path]
	if handler == nil && strings.HasPrefix(req.URL.Path, profilesPath) {
		handler = r[profilesPath]
	}
	if handler == nil && strings.HasPrefix(req.URL.Path, pagePath) {
		handler = r[pagePath]
	}
	switch {
	case handler == nil:
		writeText(w, http.StatusNotFound, "not found\n")
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		writeText(w, http.StatusMethodNotAllowed, "only GET and HEAD are allowed\n")
	default:
		handler.ServeHTTP(w, req)
	}
}
