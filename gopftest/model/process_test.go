package model_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf"
)

// processHeader names the process that sent a request.
const processHeader = "X-Process"

// requestHeader has the number of a request within its process.
const requestHeader = "X-Request"

// process is one run of the operator, and its connection to the cluster.
type process struct {
	n       int
	world   *world
	oracle  *oracle
	outside *outside
	op      *gopf.Operator
	index   *gopf.IndexOf[string, string]
	stop    context.CancelFunc
	died    chan struct{} // closed when it is killed
	done    chan struct{} // closed when Run has returned
	err     error         // of Run
	next    http.RoundTripper

	mu      sync.Mutex
	dead    bool
	cut     bool           // no request gets through
	terms   int            // how often it became the leader
	saved   map[string]int // writes that can have saved progress, by the names of objects
	sent    int            // requests sent
	counted map[int]bool   // requests that are counted in saved
	writes  int            // until it crashes; 0 if it does not
	written bool           // it crashes after the write rather than before
}

// start runs a new process of the operator.
func (w *world) start(d declaration, slot int) *process {
	ctx, stop := context.WithCancel(context.Background())
	w.mu.Lock()
	w.started++
	p := &process{
		n: w.started, world: w, oracle: w.oracle, outside: w.outside, next: w.cluster.Transport(),
		stop: stop, died: make(chan struct{}), done: make(chan struct{}), saved: map[string]int{}, counted: map[int]bool{},
	}
	p.op = d.declare(p)
	if e := &p.op.Settings.Election; w.election {
		e.Enabled, e.Name, e.Identity, e.Namespace = true, leaseName, p.identity(), "default"
		e.Duration, e.RenewDeadline, e.RetryPeriod = time.Minute, 40*time.Second, 10*time.Second
	}
	w.processes = append(w.processes, p)
	w.slots[slot] = p
	w.mu.Unlock()
	config := w.cluster.RESTConfig()
	config.Transport = p
	w.history.add("p%d starts", p.n)
	w.running.Go(func() {
		p.err = p.op.Run(ctx, append(w.options(), gopf.Cluster(config), gopf.Log(w.logger(p)))...)
		if !p.isDead() {
			w.history.add("p%d has ended: %v", p.n, p.err)
		}
		close(p.done)
	})
	return p
}

// leaseName is the name of the Lease that replicas share.
const leaseName = "model"

func (p *process) identity() string { return fmt.Sprint("p", p.n) }

// kill ends the process at once: nothing that it does afterwards has any effect.
func (p *process) kill() {
	p.mu.Lock()
	was := p.dead
	p.dead = true
	p.mu.Unlock()
	if !was {
		close(p.died)
		p.stop()
		p.oracle.wasKilled(p)
		p.world.history.add("p%d is killed", p.n)
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// sever cuts the connection to the cluster, or restores it.
func (p *process) sever(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *process) unreachable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || p.cut
}

// crash kills the process at the n-th write from now.
func (p *process) crash(n int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.written = n, after
}

func (p *process) statusSub() bool { return p.world.declaration.statusSub }

// RoundTrip implements http.RoundTripper.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.unreachable() {
		return nil, errKilled
	}
	r = r.Clone(r.Context())
	r.Header.Set(processHeader, strconv.Itoa(p.n))
	r.Header.Set(requestHeader, strconv.Itoa(p.number()))
	if p.fatal(r) {
		if p.written {
			if resp, err := p.next.RoundTrip(r); err == nil {
				p.wrote(r.Header, r.Method, r.URL.Path, resp.StatusCode)
				_ = resp.Body.Close()
			}
		}
		p.kill()
		return nil, errKilled
	}
	resp, err := p.next.RoundTrip(r)
	if err == nil {
		p.wrote(r.Header, r.Method, r.URL.Path, resp.StatusCode)
		resp.Body = severed{resp.Body, p}
	}
	return resp, err
}

// number returns the number of the next request.
func (p *process) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	return p.sent
}

// wrote counts a write of an object that can have saved progress. It may be called
// twice for one request: by the server, where the response may be lost, and by the
// process.
func (p *process) wrote(h http.Header, method, path string, code int) {
	path, status := strings.CutSuffix(path, "/status")
	if method != http.MethodPatch || code == 0 || code >= 300 || status && !p.savesInStatus() {
		return
	}
	n, err := strconv.Atoi(h.Get(requestHeader))
	name := path[strings.LastIndex(path, "/")+1:]
	p.mu.Lock()
	first := err == nil && !p.counted[n]
	late := first && p.dead
	if first {
		p.counted[n] = true
		p.saved[name]++
	}
	p.mu.Unlock()
	if late {
		p.oracle.wroteLate(p, name)
	}
}

// savesInStatus reports whether the process saves progress in the status.
func (p *process) savesInStatus() bool {
	switch p.world.declaration.storage {
	case "status", "state":
		return true
	case "moving":
		return p.n%2 == 0
	}
	return false
}

// saves is how many writes of an object can have saved progress.
func (p *process) saves(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.saved[name]
}

// fatal counts a write, and reports whether the process crashes at it.
func (p *process) fatal(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	if !strings.Contains(r.URL.Path, "/leases") {
		p.oracle.written()
	}
	if strings.Contains(r.URL.Path, "/things/") && p.world.election && p.world.leader() != p.identity() {
		p.oracle.wrong("p%d writes without the lease, which %q has: %s", p.n, p.world.leader(), r.URL.Path)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writes == 0 || strings.HasSuffix(r.URL.Path, "reviews") {
		return false
	}
	p.writes--
	return p.writes == 0
}

// severed is a response that ends with the connection.
type severed struct {
	io.ReadCloser
	process *process
}

// Read implements io.Reader.
func (s severed) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if s.process.unreachable() {
		return 0, errKilled
	}
	return n, err
}
