package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"gopf.dev/gopf/internal/loglimit"
)

// The limits of a server.
const (
	drainTime         = 5 * time.Second // for reviews under way at the end
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 60 * time.Second // a body may wait for room; slow ones are given up much earlier
	writeTimeout      = 60 * time.Second // the longest review, and then some
	idleTimeout       = 2 * time.Minute
	maxHeader         = 64 << 10

	// A body that waits for room fills its stream's buffer. The buffer of the
	// connection has room for those of all streams, or else the streams that wait would
	// stall the others. API servers open another connection if they need more streams.
	maxStreams   = 100 // of one connection
	streamBuffer = 64 << 10
)

// ServeListener serves reviews below a root path on any listener, without TLS,
// until ctx is done and the reviews under way are answered, or until the listener
// fails, which is an error. The listener is closed. It is for tunnels.
func ServeListener(ctx context.Context, l net.Listener, path string, reviews http.Handler, log *slog.Logger) error {
	if log == nil {
		log = slog.Default()
	}
	server := newServer(below(rootOf(path), reviews), log)
	l = (&connections{max: defaultMaxConnections, log: log}).watch(server, l)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
		err := drain(ctx, server, log)
		<-ended
		return err
	}
}

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: maxStreams * streamBuffer,
		},
		ErrorLog: slog.NewLogLogger(quiet{log.Handler(), &loglimit.Limiter{}}, slog.LevelWarn),
	}
}

// rootOf is a root path without slashes at its end.
func rootOf(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return ""
	}
	return "/" + path
}

// below serves what is below the root path, as if that were the root.
func below(root string, reviews http.Handler) http.Handler {
	stripped := http.StripPrefix(root, reviews)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != root && !strings.HasPrefix(r.URL.Path, root+"/") {
			http.NotFound(w, r)
			return
		}
		stripped.ServeHTTP(w, r)
	})
}

// drain stops the server, and lets it answer what it is asked already.
func drain(ctx context.Context, server *http.Server, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("Some reviews were not answered in time when the webhook server stopped.", "error", err)
		return server.Close()
	}
	return nil
}

// pause waits; it is false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// quiet limits the lines of the HTTP server. Any client can cause them, for example by
// handshakes that fail. Connections that are opened and closed, as by probes, are
// logged at debug level.
type quiet struct {
	slog.Handler
	limiter *loglimit.Limiter
}

// Handle passes lines on.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	level := r.Level
	if strings.HasSuffix(r.Message, "EOF") {
		level = slog.LevelDebug
	}
	if !q.Enabled(ctx, level) {
		return nil
	}
	ok, suppressed := q.limiter.Allow(level.String())
	if !ok {
		return nil
	}
	short := slog.NewRecord(r.Time, level, loglimit.Cut(r.Message), r.PC)
	if suppressed > 0 {
		short.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return q.Handler.Handle(ctx, short)
}
