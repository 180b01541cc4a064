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

// Limits of the HTTP server.
const (
	drainTime         = 5 * time.Second // for reviews in progress at shutdown
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 60 * time.Second // a body may wait for memory; slow clients are disconnected much earlier
	writeTimeout      = 60 * time.Second // longer than the longest review timeout of 30 s
	idleTimeout       = 2 * time.Minute
	// HTTP/2 responds to some frames itself, and keeps up to 10,000 responses for a
	// connection that is not read.
	stuckTimeout = 5 * time.Second

	// An HTTP/1 header of this size takes about 40 times as much memory when its fields
	// are short: net/http reads 4 KiB more, and keeps a map. API servers send about ten
	// fields.
	maxHeader = 4 << 10

	// A body that waits for memory fills the buffer of its stream. The buffer of the
	// connection must hold those of all streams; otherwise waiting streams would stall the
	// others. Package connlimit bounds the unread bytes in all of them.
	//
	// API servers open another connection if they need more streams. They send hundreds of
	// reviews at the same time: one for each handler of each request of their users. The fewest
	// connections must have enough streams for them, because closing one loses its reviews.
	//
	// net/http itself responds to requests whose headers are too large, before anything
	// here can limit their number. So these take up to 8 KiB of each stream.
	maxStreams   = 32       // per connection
	streamBuffer = 64 << 10 // clients may send as much before they know a lower limit

	// A connection keeps a buffer for the largest frame that its client has announced. By
	// default, net/http accepts frames of 1 MiB. 16 KiB is the least that HTTP/2 allows.
	// Clients send no larger frames unless a server accepts them.
	frameSize = 16 << 10
)

// ServeListener serves reviews on a listener, without TLS, below a root path. Use it in
// implementations of tunnels. It runs until ctx is done and the reviews in progress are
// complete, or returns an error if the listener fails. It closes the listener. log may be
// nil, which means slog.Default().
func ServeListener(ctx context.Context, l net.Listener, path string, reviews http.Handler, log *slog.Logger) error {
	if log == nil {
		log = slog.Default()
	}
	server := newServer(below(rootOf(path), reviews), log)
	l = limited(maxConnections(0), log).Watch(server, l)
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
			MaxReadFrameSize: frameSize, WriteByteTimeout: stuckTimeout,
		},
		ErrorLog: slog.NewLogLogger(quiet{log.Handler(), &loglimit.Limiter{}}, slog.LevelWarn),
	}
}

// rootOf returns a root path without trailing slashes.
func rootOf(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return ""
	}
	return "/" + path
}

// below serves requests below the root path, with the root path removed.
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

// drain shuts the server down gracefully: reviews in progress are completed.
func drain(ctx context.Context, server *http.Server, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("Some admission reviews were aborted at the shutdown of the webhook server.", "error", err)
		return server.Close()
	}
	return nil
}

// quiet limits the log lines of the HTTP server, because any client can cause them, for
// example by failed TLS handshakes. Connections that are opened and closed, as by probes,
// are logged at debug level.
type quiet struct {
	slog.Handler
	limiter *loglimit.Limiter
}

// Handle implements [slog.Handler].
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
