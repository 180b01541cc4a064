package faults_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// stream hands on the events of a watch, one line each, until it ends.
func (x *exchange) stream(from io.Reader) {
	p := x.proxy
	p.mu.Lock()
	p.streams[x] = true
	p.opened[x.resource]++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.streams, x)
		p.mu.Unlock()
	}()

	lines := make(chan []byte)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(from)
		for {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case lines <- line:
			case <-x.r.Context().Done():
				return
			}
		}
	}()
	out, end := x.emitter()
	defer end()
	for {
		select {
		case line, more := <-lines:
			switch {
			case !more:
				return
			case x.filter == nil:
				out(line)
			default:
				x.filter(x, line, out)
			}
		case <-x.frozen:
			x.hang()
		case <-x.cut:
			x.abort()
		}
	}
}

// emitter writes lines to the client, one at a time, until it is ended.
func (x *exchange) emitter() (out func([]byte), end func()) {
	var mu sync.Mutex
	over := false
	out = func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		select {
		case <-x.frozen:
			return
		case <-x.cut:
			return
		default:
		}
		if over {
			return
		}
		_, _ = x.w.Write(line)
		x.flush()
	}
	return out, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// filter does something to the events of a watch; out sends what comes of it.
type filter func(x *exchange, line []byte, out func([]byte))

// events is the effect of a filter, made for every watch anew.
func events(fresh func() filter) effect {
	return func(x *exchange) {
		x.filter = fresh()
		x.pass()
	}
}

// typed tells the type of an event.
func typed(line []byte) string {
	var e struct{ Type string }
	_ = json.Unmarshal(line, &e)
	return e.Type
}

func isNews(line []byte) bool { t := typed(line); return t != "BOOKMARK" && t != "ERROR" }

// twice sends every event two times.
func twice() filter {
	return func(_ *exchange, line []byte, out func([]byte)) {
		out(line)
		out(line)
	}
}

// late sends every event some time later, in order.
func late(d time.Duration) func() filter {
	return func() filter {
		queue := make(chan func(), 1000)
		var once sync.Once
		return func(x *exchange, line []byte, out func([]byte)) {
			once.Do(func() {
				go func() {
					for {
						select {
						case send := <-queue:
							send()
						case <-x.r.Context().Done():
							return
						}
					}
				}()
			})
			at := time.Now().Add(d)
			queue <- func() {
				select {
				case <-time.After(time.Until(at)):
					out(line)
				case <-x.r.Context().Done():
				}
			}
		}
	}
}

// replayed sends the event before again after every event: old news after new.
func replayed() filter {
	before := map[string][]byte{}
	return func(_ *exchange, line []byte, out func([]byte)) {
		out(line)
		if !isNews(line) {
			return
		}
		name := nameIn(line)
		if old := before[name]; old != nil && typed(line) != "DELETED" {
			out(old)
		}
		before[name] = line
	}
}

// haunted sends the first event about an object again after each of its others,
// until it is deleted.
func haunted() filter {
	first := map[string][]byte{}
	return func(_ *exchange, line []byte, out func([]byte)) {
		out(line)
		if !isNews(line) {
			return
		}
		name := nameIn(line)
		switch old := first[name]; {
		case typed(line) == "DELETED":
			delete(first, name)
		case old != nil:
			out(old)
		default:
			first[name] = line
		}
	}
}

// swapped sends events of different objects in another order: every second one
// before the one that came before it.
func swapped() filter {
	var held []byte
	return func(_ *exchange, line []byte, out func([]byte)) {
		switch {
		case held != nil && nameIn(held) != nameIn(line):
			out(line)
			out(held)
			held = nil
		case held != nil || !isNews(line):
			if held != nil {
				out(held)
				held = nil
			}
			out(line)
		default:
			held = bytes.Clone(line)
		}
	}
}

func nameIn(line []byte) string {
	var e struct {
		Object struct{ Metadata struct{ Name string } }
	}
	_ = json.Unmarshal(line, &e)
	return e.Object.Metadata.Name
}

// breaking does something else instead of the n-th event that is news, and ends
// the watch with it.
func breaking(n int, do func(x *exchange, line []byte, out func([]byte))) func() filter {
	return func() filter {
		seen := 0
		return func(x *exchange, line []byte, out func([]byte)) {
			if isNews(line) {
				seen++
			}
			if seen < n {
				out(line)
				return
			}
			do(x, line, out)
			x.abort()
		}
	}
}

// cutAt breaks the connection after so many bytes of events.
func cutAt(left int) func() filter {
	return func() filter {
		return func(x *exchange, line []byte, out func([]byte)) {
			out(line[:min(left, len(line))])
			if left -= len(line); left <= 0 {
				x.abort()
			}
		}
	}
}

// errorEvent sends an ERROR.
func errorEvent(code int) func(*exchange, []byte, func([]byte)) {
	return func(_ *exchange, _ []byte, out func([]byte)) {
		out(fmt.Appendf(nil, `{"type":"ERROR","object":%s}`+"\n", statusOf(code)))
	}
}

// nonsense sends something that is no event.
func nonsense(_ *exchange, _ []byte, out func([]byte)) {
	out([]byte(`{"type":"MODIFIED","object":{]}` + "\n"))
}

// half sends a part of the event.
func half(_ *exchange, line []byte, out func([]byte)) { out(line[:len(line)/2]) }
