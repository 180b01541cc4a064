package kube

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged makes the kernel close the connection if the peer does not confirm
// data within the limit. Where it cannot be set, the timeout of the request ends the wait.
func limitUnacknowledged(conn *net.TCPConn, limit time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
