package model_test

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

// world is a cluster with an operator, users and faults.
type world struct {
	t           *testing.T
	cluster     *gopftest.Cluster
	declaration declaration
	next        *declaration // the next version of the operator, if there is one
	election    bool
	moving      bool // the kind and namespaces come and go
	history     *history
	oracle      *oracle
	outside     *outside
	runOptions  []gopf.RunOption
	running     sync.WaitGroup
	idle        time.Duration // at the end

	mu        sync.Mutex
	started   int // processes so far
	processes []*process
	slots     []*process // the last one of each replica
	versions  []int      // of the declaration, of each replica
	faults    []*gopftest.Fault
	downtime  time.Duration // between the end of one process and the start of the next
	ending    bool          // no process is started any more
}

func newWorld(t *testing.T, d declaration, e environment) *world {
	c := gopftest.NewCluster(t)
	e.apply(c)
	h := newHistory(c)
	h.add("%s", e)
	w := &world{t: t, cluster: c, declaration: d, history: h, oracle: newOracle(h, d), outside: newOutside(), idle: 30 * time.Minute}
	w.oracle.abort = w.abort
	w.define()
	return w
}

// abort kills all processes, because otherwise the world would not end.
func (w *world) abort() {
	w.mu.Lock()
	w.ending = true
	ps := w.processes
	w.mu.Unlock()
	for _, p := range ps {
		p.kill()
	}
}

func (w *world) options() []gopf.RunOption { return w.runOptions }

func (w *world) logger(p *process) *slog.Logger {
	to := slog.DiscardHandler
	if os.Getenv("GOPF_MODEL_LOG") != "" {
		to = logs.New(w.t.Output(), logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true})
	}
	if w.election {
		to = termLog{to, p}
	}
	return slog.New(to).With("process", p.n)
}

// supervise keeps the replicas running until the world ends, as Kubernetes does.
func (w *world) supervise(replicas int) {
	w.election = replicas > 1
	w.slots, w.versions = make([]*process, replicas), make([]int, replicas)
	for slot := range replicas {
		w.running.Go(func() {
			for !w.isEnding() {
				p := w.start(w.version(slot), slot)
				select {
				case <-p.died:
				case <-p.done:
					if p.err != nil { // the cluster cannot be reached at the start
						time.Sleep(5 * time.Second)
					}
				}
				w.mu.Lock()
				d := w.downtime
				w.mu.Unlock()
				time.Sleep(d)
			}
		})
	}
}

// version returns the declaration with which a replica is started.
func (w *world) version(slot int) declaration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions[slot] > 0 {
		return *w.next
	}
	return w.declaration
}

// current returns the running process of a replica, or its last one.
func (w *world) current(slot int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots[slot]
}

func (w *world) isEnding() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ending
}

// end stops all processes, the leader last. Otherwise another replica could take over and
// begin to resume objects.
func (w *world) end() {
	w.mu.Lock()
	w.ending = true
	ps := w.processes
	w.mu.Unlock()
	leader := w.leader()
	for _, p := range ps {
		if p.identity() != leader {
			p.stop()
			<-p.done
		}
	}
	for _, p := range ps {
		p.stop()
	}
	w.running.Wait()
}

// fault adds a fault. Behind it, executed writes are counted, so a lost response is not
// mistaken for a lost write.
func (w *world) fault(m gopftest.Match, effects ...gopftest.Effect) {
	f := w.cluster.Fault(m, append(effects, gopftest.After(w.served))...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, f)
}

// served counts a write of the operator.
func (w *world) served(r gopftest.Request) {
	n, err := strconv.Atoi(r.Header.Get(processHeader))
	if err != nil {
		return
	}
	w.mu.Lock()
	p := w.processes[n-1]
	w.mu.Unlock()
	path, _, _ := strings.Cut(r.Path, "?")
	p.wrote(r.Header, r.Method, path, r.Code)
}

// calm ends all faults and pauses.
func (w *world) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		f.Stop()
	}
	for _, p := range w.processes {
		p.sever(false)
		p.crash(0, false)
		p.op.Unpause()
	}
	w.history.add("-- calm")
}

// quiet waits until everything that is due soon has happened.
func quiet(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rest waits until no handler was called for longer than the longest delay after an error.
func (w *world) rest() {
	for range 20 {
		before := w.oracle.activity()
		quiet(12 * time.Minute)
		if w.oracle.activity() == before {
			return
		}
	}
}

// perform executes the plan, and checks the outcome of each episode.
func (w *world) perform(plan [][]action) {
	for _, episode := range plan {
		for _, a := range episode {
			quiet(a.after)
			w.history.add("-- %s", a.text)
			a.do(w)
		}
		w.calm()
		if w.moving {
			quiet(15 * time.Minute)
			w.restore()
		}
		w.rest()
		if w.isEnding() {
			return
		}
		w.oracle.settled(w)
	}
}
