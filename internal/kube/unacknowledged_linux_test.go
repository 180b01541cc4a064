package kube

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A peer that is gone does not confirm what it is sent. The kernel closes such a connection
// after 9 s instead of 15 minutes.
func TestConnectionsLimitUnacknowledgedData(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := dialTCP(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var limit int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		limit, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got := time.Duration(limit) * time.Millisecond; got != unacknowledged {
		t.Errorf("got %s", got)
	}
}
