package kube

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// packets is a connection that receives data at set times.
type packets struct {
	net.Conn
	arriving []packet
	arrived  []byte
	began    time.Time
	end      error
	reads    int
}

type packet struct {
	at   time.Duration
	data []byte
}

func (c *packets) Read(p []byte) (int, error) {
	c.reads++
	for {
		for len(c.arriving) > 0 && time.Since(c.began) >= c.arriving[0].at {
			c.arrived = append(c.arrived, c.arriving[0].data...)
			c.arriving = c.arriving[1:]
		}
		switch {
		case len(c.arrived) > 0:
			n := copy(p, c.arrived)
			c.arrived = c.arrived[n:]
			return n, nil
		case len(c.arriving) == 0:
			return 0, c.end
		}
		time.Sleep(c.arriving[0].at - time.Since(c.began))
	}
}

// arrive returns a connection that receives n packets with the interval in between.
func arrive(n, size int, interval time.Duration) (c *packets, all []byte) {
	c = &packets{began: time.Now(), end: io.EOF}
	for i := range n {
		data := bytes.Repeat([]byte{byte(i)}, size)
		c.arriving = append(c.arriving, packet{time.Duration(i) * interval, data})
		all = append(all, data...)
	}
	return c, all
}

func TestABusyConnectionIsReadInLargeParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, all := arrive(4000, 3300, 100*time.Microsecond)
		got, err := readAll(&gathering{Conn: c, pace: responsePace(), drained: true}, 8<<10)
		if err != nil || !bytes.Equal(got, all) {
			t.Fatalf("%d bytes of %d: %v", len(got), len(all), err)
		}
		if c.reads > 4000/4 {
			t.Errorf("%d reads", c.reads)
		}
		if late := time.Since(c.began) - 3999*100*time.Microsecond; late > 2*gatherTime {
			t.Errorf("the last packet was read %v after its arrival", late)
		}
	})
}

// Events of a quiet watch must not be delayed.
func TestAQuietConnectionIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := arrive(1000, 3300, 5*time.Millisecond)
		g := &gathering{Conn: c, pace: responsePace(), drained: true}
		p := make([]byte, 8<<10)
		for i := range 1000 {
			if _, err := g.Read(p); err != nil {
				t.Fatal(err)
			}
			if late := time.Since(c.began) - time.Duration(i)*5*time.Millisecond; late != 0 {
				t.Fatalf("packet %d was read %v after its arrival", i, late)
			}
		}
	})
}

// A storm of events is read in parts, and each event is late by one pause at most.
func TestAWatchGathersTheEventsOfAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, interval = 2000, 1500 * time.Microsecond
		c, all := arrive(n, 2400, interval)
		g := &gathering{Conn: c, pace: watchPace(), drained: true}
		p := make([]byte, 32<<10)
		for read := 0; read < len(all); {
			last := min(read/2400, n-1)
			got, err := g.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			if late := time.Since(c.began) - time.Duration(last)*interval; late > gatherTime {
				t.Fatalf("event %d was read %v after its arrival", last, late)
			}
			read += got
		}
		if c.reads > n/2 {
			t.Errorf("%d reads of %d events", c.reads, n)
		}
		// The end of the storm.
		for range 20 {
			c.arriving = []packet{{time.Since(c.began) + 20*time.Millisecond, make([]byte, 2400)}}
			sent := time.Now()
			if _, err := g.Read(p); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(sent); took != 20*time.Millisecond {
				t.Fatalf("a single event was read after %v", took)
			}
		}
	})
}

// Responses to requests that are sent one after another must not be delayed, even if a busy
// time came before.
func TestResponsesAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := arrive(100, 3300, 100*time.Microsecond)
		g := &gathering{Conn: c, pace: responsePace(), drained: true}
		p := make([]byte, 8<<10)
		for len(c.arriving) > 0 || len(c.arrived) > 0 || g.buffer != nil {
			if _, err := g.Read(p); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			c.arriving = []packet{{time.Since(c.began) + 2*time.Millisecond, make([]byte, 800)}}
			sent := time.Now()
			if _, err := g.Read(p); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(sent); took != 2*time.Millisecond && i > 0 {
				t.Fatalf("response %d was read after %v", i, took)
			}
		}
	})
}

func TestAConnectionIsQuietAgainAfterAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := arrive(200, 3300, 100*time.Microsecond)
		c.arriving = append(c.arriving, packet{time.Second, []byte{254}}, packet{2 * time.Second, []byte{255}})
		g := &gathering{Conn: c, pace: responsePace(), drained: true}
		p := make([]byte, 8<<10)
		for {
			n, err := g.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			if last := p[n-1]; last == 255 {
				break
			} else if last == 254 && g.buffer != nil {
				t.Error("a quiet connection keeps a buffer")
			}
		}
		if late := time.Since(c.began) - 2*time.Second; late != 0 {
			t.Errorf("the last packet was read %v after its arrival", late)
		}
	})
}

// Whatever the sizes and the times are, all data arrives in order, and then the error.
func TestGatheringLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := &packets{began: time.Now(), end: broken}
			var all []byte
			at := time.Duration(0)
			for range r.IntN(300) {
				data := make([]byte, 1+r.IntN(1<<r.IntN(17)))
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				c.arriving = append(c.arriving, packet{at, data})
				all = append(all, data...)
				at += time.Duration(r.IntN(1 << r.IntN(23)))
			}
			got, err := readAll(&gathering{Conn: c, pace: responsePace(), drained: true}, 1+r.IntN(20_000))
			if !errors.Is(err, broken) || !bytes.Equal(got, all) {
				t.Fatalf("seed %d: %d bytes of %d: %v", seed, len(got), len(all), err)
			}
		}
	})
}

// readAll reads with buffers of the size until an error.
func readAll(r io.Reader, size int) (all []byte, err error) {
	p := make([]byte, size)
	for {
		n, err := r.Read(p)
		all = append(all, p[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}
