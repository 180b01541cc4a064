package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Config says what to serve where. Begin with [DefaultConfig]: here zero means
// zero, not the default.
//
// Addresses are host:port. No host is all hosts, port 0 is any free one.
// Whatever has the same address shares one listener. Nothing is served of what
// has no address.
type Config struct {
	// Liveness is Kopf's endpoint of probes, as http://[host][:port][/path]: the
	// results of all probes as one JSON object. No host is localhost here, as
	// in Kopf.
	Liveness string
	// Health is the address of /livez and /readyz.
	Health string
	// Metrics is the address of /metrics.
	Metrics string
	// Debug is the address of /debug/pprof/. It is for people with access to the
	// machine: better not for other hosts.
	Debug string

	// Snapshot tells what the operator knows about itself. It is called for every
	// request, must not block, and may be called at any time.
	Snapshot func() Snapshot
	// Probes are what Liveness calls; nil for none. They are not called before
	// the operator has started.
	Probes Probes
	// MetricsHandler is what Metrics serves.
	MetricsHandler http.Handler

	// ProbeLimit is how long the probes may take, all together. 30 s.
	ProbeLimit time.Duration
	// ProbeAge is for how long their results are served again. 10 s.
	ProbeAge time.Duration
	// Grace is how long requests and probes that are running have to end when
	// the server stops. 1 s.
	Grace time.Duration

	Log *slog.Logger // nil for none
}

// DefaultConfig has the defaults named at the fields, and serves nothing.
func DefaultConfig() Config {
	return Config{ProbeLimit: 30 * time.Second, ProbeAge: 10 * time.Second, Grace: time.Second}
}

// What requests may take.
const (
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second // to be read; and to be answered, probes aside
	idleTime    = time.Minute
	headerBytes = 16 << 10
)

// Server serves the health of an operator. It is made by [Listen].
type Server struct {
	config Config
	probes *collector
	sites  []*site
	at     Addresses
}

// Addresses are where things are served, with the ports that were picked. What
// is not served is empty.
type Addresses struct {
	Liveness               string // a URL
	Health, Metrics, Debug string
}

// site is one listener and what it serves.
type site struct {
	asked    string // the address as it was asked for
	listener net.Listener
	routes   routes
}

// Listen opens all addresses, or none. It returns an [*AddressError] if one
// cannot be served. Of a server, either Run or Close must be called.
func Listen(ctx context.Context, c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Snapshot == nil && c.Liveness+c.Health != "":
		return nil, errors.New("serve health: there is no Snapshot to judge")
	case c.MetricsHandler == nil && c.Metrics != "":
		return nil, errors.New("serve metrics: there is no MetricsHandler")
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
		bound, err := s.serve(ctx, "the probes", address, map[string]http.Handler{path: probePage(c.Snapshot, s.probes)})
		if err != nil {
			return err
		}
		s.at.Liveness = "http://" + bound + path
	}
	pages := map[string]http.Handler{"/livez": livePage(c.Snapshot), "/readyz": readyPage(c.Snapshot)}
	profiles := map[string]http.Handler{profilesPath: http.HandlerFunc(serveProfiles)}
	for _, e := range []struct {
		what, address string
		routes        map[string]http.Handler
		bound         *string
	}{
		{"health", c.Health, pages, &s.at.Health},
		{"metrics", c.Metrics, map[string]http.Handler{"/metrics": c.MetricsHandler}, &s.at.Metrics},
		{"profiles", c.Debug, profiles, &s.at.Debug},
	} {
		if e.address == "" {
			continue
		}
		var err error
		if *e.bound, err = s.serve(ctx, e.what, e.address, e.routes); err != nil {
			return err
		}
	}
	return nil
}

// serve adds routes to an address, and begins to listen there if nobody does.
func (s *Server) serve(ctx context.Context, what, address string, added map[string]http.Handler) (bound string, err error) {
	if err := CheckAddress(what, address); err != nil {
		return "", err
	}
	at, err := s.site(ctx, address)
	if err != nil {
		return "", &AddressError{address, what, advise(err), err}
	}
	for path, handler := range added {
		if at.routes[path] != nil {
			return "", &AddressError{address, what, "choose another port for one of them",
				fmt.Errorf("the path %s is taken by another endpoint", path)}
		}
		at.routes[path] = handler
	}
	return at.listener.Addr().String(), nil
}

func (s *Server) site(ctx context.Context, address string) (*site, error) {
	for _, at := range s.sites {
		if at.asked == address {
			return at, nil
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		var inner *net.OpError
		if errors.As(err, &inner) {
			err = inner.Err // the whole one repeats the address
		}
		return nil, err
	}
	at := &site{address, listener, routes{}}
	s.sites = append(s.sites, at)
	return at, nil
}

// Addresses tells where things are served.
func (s *Server) Addresses() Addresses { return s.at }

// Close closes the listeners of a server that does not run.
func (s *Server) Close() {
	for _, at := range s.sites {
		at.listener.Close()
	}
}

// tellPorts tells of those that were picked, which nobody knows otherwise.
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

// Run serves until ctx is done, and returns nil then; or until a listener
// breaks, and returns why. It leaves no goroutines behind but those of requests
// and probes that do not end in time, which it logs.
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
		server := s.server(ctx, at.routes)
		servers = append(servers, server)
		serving.Go(func() {
			if err := server.Serve(at.listener); !errors.Is(err, http.ErrServerClosed) {
				broken <- fmt.Errorf("serve health at %s: %w", at.asked, err)
			}
		})
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel() // of requests and probes: nobody needs them now
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
	defer stop()
	for _, server := range servers {
		serving.Go(func() {
			if server.Shutdown(late) != nil {
				s.config.Log.Debug("Some requests about the operator's health do not end and are cut off.")
				_ = server.Close() // of listeners that are closed already
			}
		})
	}
	serving.Wait()
	select {
	case <-probes:
	case <-late.Done():
		s.config.Log.Warn("A probe does not heed that the operator stops, and is left behind.")
	}
	return err
}

func (s *Server) server(ctx context.Context, r routes) *http.Server {
	return &http.Server{
		Handler:           r,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      s.config.ProbeLimit + requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
	}
}

// routes serve exact paths, and all profiles by one. Unlike a ServeMux, they
// redirect nobody.
type routes map[string]http.Handler

func (r routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	handler := r[req.URL.Path]
	if handler == nil && strings.HasPrefix(req.URL.Path, profilesPath) {
		handler = r[profilesPath]
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
