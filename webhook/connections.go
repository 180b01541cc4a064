package webhook

import (
	"log/slog"

	"gopf.dev/gopf/internal/connlimit"
	"gopf.dev/gopf/internal/loglimit"
)

// defaultMaxConnections is enough for many API servers: each uses a few connections
// for all of its reviews. A connection can take 600 KB of memory before its requests
// can be limited: for headers, or for its streams.
const defaultMaxConnections = 192

// limited returns a limit of connections that logs a few of those that are closed.
func limited(most int, log *slog.Logger) *connlimit.Connections {
	limiter := &loglimit.Limiter{}
	return &connlimit.Connections{Max: most, Shared: true, Full: func(peer string) {
		if ok, suppressed := limiter.Allow("connections"); ok {
			log.Warn("The webhook server has too many connections, and closed one of the peer with the most of them.",
				"limit", most, "peer", peer, "suppressed", suppressed)
		}
	}}
}
