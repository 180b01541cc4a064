package webhook

import (
	"log/slog"
	"runtime/debug"

	"gopf.dev/gopf/internal/connlimit"
	"gopf.dev/gopf/internal/loglimit"
)

const (
	// defaultMaxConnections is enough for many API servers: each uses up to 8 connections
	// for all of its reviews.
	defaultMaxConnections = 192
	// fewConnections is the default where memory is scarce.
	fewConnections = 32
	// connectionMemory is what a connection can take before its requests can be limited: for
	// its streams (512 KiB), for headers, and for the buffers of its socket.
	connectionMemory = 768 << 10
)

// connectionsWithin returns the default limit of connections for a memory limit of the process,
// in bytes. All connections together can take an eighth of it, unless that is too few.
func connectionsWithin(memory int64) int {
	return int(min(max(memory/8/connectionMemory, fewConnections), defaultMaxConnections))
}

// maxConnections returns the limit of connections. 0 means the default.
func maxConnections(given int) int {
	if given > 0 {
		return given
	}
	return connectionsWithin(debug.SetMemoryLimit(-1)) // which only returns it
}

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
