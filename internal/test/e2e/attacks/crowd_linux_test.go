package attacks_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// crowd opens connections to the webhook port from an address of its own, because the
// limits are per address. do uses each of them until the end.
func (s *scene) crowd(n int, protocol string, do func(net.Conn)) {
	s.crowdFrom(n, func(int) net.IP { return net.IPv4(127, 0, 0, 2) }, protocol, do)
}

// crowdFrom opens connections from several addresses.
func (s *scene) crowdFrom(n int, address func(i int) net.IP, protocol string, do func(net.Conn)) {
	end := time.Now().Add(time.Duration(size(3, 8)) * time.Second)
	var running sync.WaitGroup
	for i := range n {
		dialer := &net.Dialer{Timeout: inTime, LocalAddr: &net.TCPAddr{IP: address(i)}}
		running.Go(func() {
			for time.Now().Before(end) { // the operator may close connections
				raw, err := dialer.Dial("tcp", s.webhooks)
				if err != nil {
					continue
				}
				conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
				_ = conn.SetDeadline(end) // a socket can always do that
				do(conn)
				raw.Close()
			}
		})
	}
	running.Wait()
}

// manyFields sends headers with as many fields as possible, and not all of the body.
func (s *scene) manyFields() []string {
	var fields strings.Builder
	for i := 0; fields.Len() < 8<<10-200; i++ {
		fmt.Fprintf(&fields, "%x:\n", i)
	}
	s.crowd(1000, "http/1.1", func(conn net.Conn) {
		fmt.Fprintf(conn, "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n%s\r\n{", fields.String())
		_, _ = io.Copy(io.Discard, conn) // until it is closed
	})
	return nil
}

// frames sends frames of HTTP/2 that the operator must respond to, but that are no
// reviews: streams that are reset at once, malformed headers, and pings. They are built
// only once: this process needs the processors for the bystander.
func (s *scene) frames() []string {
	const headers, reset, settings, ping = 1, 3, 4, 6
	head := "\x83\x87\x04\x09/validate\x01\x01x" // POST, https, the path and the authority
	var out bytes.Buffer
	out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	out.Write(frame(settings, 0, 0, nil))
	for id := uint32(1); id < 40_000; id += 4 {
		out.Write(frame(headers, 4, id, []byte(head))) // 4 is END_HEADERS
		out.Write(frame(reset, 0, id, []byte{0, 0, 0, 8}))
		out.Write(frame(headers, 4, id+2, []byte(head+"\x00\x01X\x01x"))) // names have no capital letters
		for range 10 {
			out.Write(frame(ping, 0, 0, []byte("12345678")))
		}
	}
	s.crowd(80, "h2", func(conn net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
		_, _ = conn.Write(out.Bytes())                   // the operator may close it
	})
	return nil
}

// updates sends small frames of HTTP/2 from many addresses: each has its own limits.
func (s *scene) updates() []string {
	const settings, windowUpdate = 4, 8
	var out bytes.Buffer
	out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	out.Write(frame(settings, 0, 0, nil))
	for range 200_000 {
		out.Write(frame(windowUpdate, 0, 0, []byte{0, 0, 0, 1}))
	}
	s.crowdFrom(100, func(i int) net.IP { return net.IPv4(127, 0, 1, byte(1+i)) }, "h2", func(conn net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
		_, _ = conn.Write(out.Bytes())                   // the operator may close it
		time.Sleep(100 * time.Millisecond)               // the operator has read some of it
	})
	return nil
}

// unread opens as many streams as it can and lets the operator send no responses.
func (s *scene) unread(fields int) []string {
	var head bytes.Buffer
	put := func(name, value string) {
		head.WriteByte(0) // a literal that is not indexed
		for _, text := range []string{name, value} {
			head.WriteByte(byte(len(text)))
			head.WriteString(text)
		}
	}
	for _, pseudo := range [][2]string{{":method", "POST"}, {":path", "/validate"}, {":scheme", "https"}, {":authority", "x"}, {"content-length", "3000000"}} {
		put(pseudo[0], pseudo[1])
	}
	for i := range fields {
		put(fmt.Sprintf("%x", i), "")
	}
	s.crowd(600, "h2", func(conn net.Conn) {
		const data, headers, settings = 0, 1, 4
		const noWindow = "\x00\x04\x00\x00\x00\x00" // SETTINGS_INITIAL_WINDOW_SIZE
		var out bytes.Buffer
		out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		out.Write(frame(settings, 0, 0, []byte(noWindow)))
		for i := range 8 {
			id := uint32(2*i + 1)
			out.Write(frame(headers, 4, id, head.Bytes())) // 4 is END_HEADERS
			for range 4 {
				out.Write(frame(data, 0, id, bytes.Repeat([]byte(" "), 16_000)))
			}
		}
		if _, err := conn.Write(out.Bytes()); err == nil {
			_, _ = io.Copy(io.Discard, conn) // until it is closed
		}
	})
	return nil
}

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	raw := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	raw = binary.BigEndian.AppendUint32(append(raw, flags), stream)
	return append(raw, payload...)
}
