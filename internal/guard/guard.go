// Package guard protects endpoints of the operator: it serves them over TLS, and asks the
// API server for each request whether the client is known and may read the path.
//
// A request needs a bearer token. The API server authenticates it with a TokenReview, and
// a SubjectAccessReview decides about the verb "get" on the path, as a path that is no
// resource. Everything that is unclear is refused: if the API server does not respond, no
// request is served. Verdicts are cached for a short time, and the number of concurrent
// reviews is limited, so clients cannot flood the API server through the operator.
//
// guard.go decides about requests, review.go asks the API server, cache.go keeps verdicts,
// and certificate.go provides the certificate.
package guard

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/loglimit"
)

// Limits of reviews.
const (
	atOnce     = 4               // concurrent requests in review
	reviewTime = 5 * time.Second // of one request, with the wait for its turn
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	maxEntries = 256

	ofPeer       = 8           // requests of one address that are in review, wait for it, or were just refused
	afterRefusal = time.Second // for which a request with an unknown token is counted, and its response is delayed
)

// Guard decides about requests to endpoints. It is safe for concurrent use.
type Guard struct {
	api      atomic.Pointer[API] // nil during startup
	slots    chan struct{}
	verdicts *cache
	log      *slog.Logger
	failures loglimit.Limiter

	mu    sync.Mutex
	peers map[string]int // the requests of each address that count; see ofPeer
}

// New returns a guard that responds with 503 until [Guard.Use] is called. A nil logger
// means no logging.
func New(log *slog.Logger) *Guard {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Guard{slots: make(chan struct{}, atOnce), verdicts: newCache(maxEntries), log: log, peers: map[string]int{}}
}

// Use sets the client of the API server that reviews requests. The client must not retry
// for long, and needs the permissions to create both kinds of reviews.
func (g *Guard) Use(api API) { g.api.Store(&api) }

// Protect returns a handler that passes on only requests of clients that may read the path.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token := bearer(req)
		if token == "" {
			refuse(w, http.StatusUnauthorized, "a bearer token is missing; send the header 'Authorization: Bearer TOKEN'")
			return
		}
		switch g.judge(req.Context(), peerOf(req), token, req.URL.Path) {
		case allowed:
			next.ServeHTTP(w, req)
		case unknown:
			refuse(w, http.StatusUnauthorized, "the API server does not accept the bearer token")
		case forbidden:
			refuse(w, http.StatusForbidden, "the user of the bearer token has no permission for this path; grant the verb get on it, as a nonResourceURL")
		default:
			refuse(w, http.StatusServiceUnavailable, "the API server cannot review the request now; try again later")
		}
	})
}

// judge returns the verdict about a request. A client that sends unknown tokens cannot block
// the reviews of clients with other addresses, and causes few reviews per second.
func (g *Guard) judge(ctx context.Context, peer, token, path string) verdict {
	key := keyOf(token, path)
	if v, ok := g.verdicts.get(key, time.Now()); ok {
		return v
	}
	api := g.api.Load()
	if api == nil {
		return unclear
	}
	if !g.enter(peer) {
		return unclear
	}
	defer g.leave(peer)
	v := g.decide(ctx, *api, key, token, path)
	if v == unknown {
		_ = backoff.Sleep(ctx, afterRefusal) // the client may be gone
	}
	return v
}

// enter counts a request of an address. It returns false if there are too many.
func (g *Guard) enter(peer string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[peer] >= ofPeer {
		return false
	}
	g.peers[peer]++
	return true
}

func (g *Guard) leave(peer string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[peer]--; g.peers[peer] == 0 {
		delete(g.peers, peer)
	}
}

// peerOf returns the address of the client, without the port.
func peerOf(req *http.Request) string {
	if host, _, err := net.SplitHostPort(req.RemoteAddr); err == nil {
		return host
	}
	return req.RemoteAddr
}

// decide asks the API server about a request.
func (g *Guard) decide(ctx context.Context, api API, key [sha256.Size]byte, token, path string) verdict {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return unclear
	}
	if v, ok := g.verdicts.get(key, time.Now()); ok { // decided during the wait
		return v
	}
	v, err := review(ctx, api, token, path)
	if err != nil {
		if ctx.Err() != context.Canceled { // otherwise the client is gone
			g.complain(ctx, strings.ReplaceAll(err.Error(), token, "TOKEN"))
		}
		return unclear
	}
	lifetime := refusedFor
	if v == allowed {
		lifetime = allowedFor
	}
	g.verdicts.put(key, v, time.Now(), lifetime)
	return v
}

// complain logs why a request could not be reviewed, a few times a minute.
func (g *Guard) complain(ctx context.Context, why string) {
	if ok, suppressed := g.failures.Allow("review"); ok {
		g.log.WarnContext(ctx, "A request to a protected endpoint was refused, because it could not be reviewed.", "error", loglimit.Cut(why), "suppressed", suppressed)
	}
}

// keyOf returns the key of a request in the cache. The token cannot be read from it.
func keyOf(token, path string) [sha256.Size]byte {
	return sha256.Sum256([]byte(token + "\x00" + path)) // a header has no zero byte
}

// bearer returns the bearer token of a request. "" means none.
func bearer(req *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// refuse sends an error. Its text never has the token.
func refuse(w http.ResponseWriter, code int, text string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // the client may be gone
}
