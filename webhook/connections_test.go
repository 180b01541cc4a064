package webhook

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReviewsAreAnsweredDuringAFloodOfConnections(t *testing.T) {
	for name, server := range map[string]Local{"TLS": {}, "plain": {Insecure: true}} {
		server.Addr, server.MaxConnections = "127.0.0.1", 8
		c := <-run(t, server, echo)
		client := clientOf(c)
		if code, _ := post(t, client, c.URL+"/x"); code != http.StatusOK {
			t.Fatalf("%s: the first answer is %d", name, code)
		}
		_, address, _ := strings.Cut(c.URL, "://")
		var flood []net.Conn
		for range 50 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			flood = append(flood, conn)
		}
		if code, _ := post(t, client, c.URL+"/x"); code != http.StatusOK {
			t.Errorf("%s: the answer is %d", name, code)
		}
		_ = flood[0].SetReadDeadline(time.Now().Add(10 * time.Second)) // a socket can always do that
		if n, err := io.Copy(io.Discard, flood[0]); n > 0 || err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: the first connection of the flood got %d bytes, %v", name, n, err)
		}
	}
}

func TestANegativeNumberOfConnectionsIsAnError(t *testing.T) {
	if err := (Local{MaxConnections: -1}).Validate(); err == nil {
		t.Error("it is accepted")
	}
	if err := (Local{MaxConnections: 1, MinVersion: tls.VersionTLS13}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestAFloodOfConnectionsCannotFloodTheLog(t *testing.T) {
	var log bytes.Buffer
	c := limited(4, slog.New(slog.NewTextHandler(&log, nil)))
	for range 100 {
		c.Full("10.0.0.2")
	}
	if got := log.String(); strings.Count(got, "\n") != 5 || !strings.Contains(got, "limit=4 peer=10.0.0.2") {
		t.Errorf("the log is %s", got)
	}
}

func TestConnectionsAreFewerWithAMemoryLimit(t *testing.T) {
	for memory, want := range map[int64]int{
		math.MaxInt64: 192, // no limit
		1536 << 20:    192,
		768 << 20:     96,
		230 << 20:     32, // of a container with 256 MiB
		64 << 20:      32,
	} {
		if got := connectionsWithin(memory); got != want {
			t.Errorf("%d MiB: got %d, want %d", memory>>20, got, want)
		}
	}
	if maxConnections(7) != 7 {
		t.Error("the setting is ignored")
	}
}

// net/http allocates the buffer for a frame as soon as its length has arrived.
func TestLargeFramesEndTheirConnection(t *testing.T) {
	c := <-run(t, Local{Addr: "127.0.0.1"}, echo)
	_, address, _ := strings.Cut(c.URL, "://")
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // only the frames matter
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // a socket can always do that
	const settings, goAway, frameSizeError = 4, 7, 6
	settingsFrame := []byte{0, 0, 0, settings, 0, 0, 0, 0, 0}
	largeHeader := []byte{0, 0x40, 1, 0, 0, 0, 0, 0, 1} // of a frame of 16 KiB and 1 byte
	if _, err := conn.Write(slices.Concat([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settingsFrame, largeHeader)); err != nil {
		t.Fatal(err)
	}
	for {
		var header [9]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			t.Fatalf("the server has not refused the frame: %v", err)
		}
		frame := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			t.Fatal(err)
		}
		if header[3] == goAway {
			if code := frame[7]; code != frameSizeError {
				t.Errorf("the connection ended with the code %d", code)
			}
			return
		}
	}
}
