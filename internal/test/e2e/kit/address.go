package kit

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// addresses counts the addresses that FreeAddress returned.
var addresses atomic.Int32

// FreeAddress returns an address of this machine on which no process listens. Its port is
// below those that the system assigns to connections and to listeners without a port. No
// other test gets it before the caller listens there. Each call returns another one.
func FreeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+(os.Getpid()*97+int(addresses.Add(1)))%10000)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
