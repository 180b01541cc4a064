package connlimit

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// The kernel keeps what a peer does not read. The limit of the system is 4 MiB per connection,
// so a few hundred peers that do not read could take all memory of a container.
func TestUnreadResponsesTakeLittleMemoryOfTheKernel(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := (&Connections{Max: 4}).Watch(&http.Server{Handler: http.NotFoundHandler()}, raw)
	defer listener.Close()
	client, err := net.Dial("tcp", raw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	kept, part := 0, make([]byte, 4<<10)
	for err == nil && kept < 16<<20 {
		var n int
		_ = server.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		n, err = server.Write(part)
		kept += n
	}
	if kept > 512<<10 {
		t.Errorf("the kernel keeps %d KiB that the peer does not read", kept>>10)
	}
	t.Logf("the kernel keeps %d KiB", kept>>10)
}
