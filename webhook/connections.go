package webhook

import (
	"log/slog"
	"runtime/debug"

	"gopf.dev/gopf/internal/connlimit"
	"gopf.dev/gopf/internal/loglimit"
)

const (
	// defaultMaxConnections is enough for many API servers: each uses a connection for 32 of its
	// reviews.
	defaultMaxConnections = 192
	// fewConnections is the default where memory is scarce. They have streams for all reviews that
	// the reviewer accepts of a client.
	fewConnections = 32
	// connectionMemory is the memory that a connection can take before its requests can be limited: for
	// headers and responses of its streams, and for the buffers of its socket.
	connectionMemory = 512 << 10
	// leastUnread and mostUnread bound the bytes of bodies that may have arrived and were not read.
	leastUnread, mostUnread = 8 << 20, 64 << 20
)

// connectionsWithin returns the default limit of connections for a memory limit of the process,
// in bytes. All connections together can take a sixteenth of it, unless that is too few.
func connectionsWithin(memory int64) int {
	return int(min(max(memory/16/connectionMemory, fewConnections), defaultMaxConnections))
}

// unreadWithin returns the limit of unread bytes of bodies for a memory limit of the process.
func unreadWithin(memory int64) int {
	return int(min(max(memory/16, leastUnread), mostUnread))
}

// maxConnections returns the limit of connections. 0 means the default.
func maxConnections(given int) int {
	if given > 0 {
		return given
	}
	return connectionsWithin(memoryLimit())
}

// memoryLimit returns the memory limit of the process.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) } // which only returns it

// limited returns a limit of connections that logs a few of those that are closed.
func limited(most int, log *slog.Logger) *connlimit.Connections {
	limiter := &loglimit.Limiter{}
	return &connlimit.Connections{Max: most, Shared: true, Unread: unreadWithin(memoryLimit()), Full: func(peer string) {
		if ok, suppressed := limiter.Allow("connections"); ok {
			log.Warn("The webhook server has too many connections, and closed one of the peer with the most of them.",
				"limit", most, "peer", peer, "suppressed", suppressed)
		}
	}}
}
