package call

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/queue"
)

// Kept calls programs that stay alive: each gets JSON lines and responds with one line per
// call. A program has one call at a time, so a call that hangs stops only its own program.
// Namespaces take turns, and one cannot have all programs if there are several. For reviews,
// this holds for clients: see [Acquire].
type Kept struct {
	options Options
	slots   *queue.Slots // one for each program
	idle    chan *worker
	n       int
	closed  chan struct{}
}

// NewKept returns a caller of kept programs. They are started with their first calls.
func NewKept(o Options) *Kept {
	n := max(o.Call.Processes, 1)
	k := &Kept{options: o, slots: queue.NewSlots(n), idle: make(chan *worker, n), n: n, closed: make(chan struct{})}
	for range n {
		k.idle <- &worker{options: &k.options}
	}
	return k
}

// Call sends one line to a program that has no other call, and waits for one if there is
// none.
func (k *Kept) Call(ctx context.Context, r *Request) (Output, error) {
	release, ok := Acquire(k.slots, r.Input.Review, r.Namespace, ctx.Done(), k.closed)
	if !ok && ctx.Err() != nil {
		return Output{}, context.Cause(ctx)
	}
	if !ok {
		return Output{}, errStopping
	}
	defer release()
	var w *worker
	select {
	case w = <-k.idle: // there is one, unless Close has it
	case <-k.closed:
		return Output{}, errStopping
	}
	defer func() { k.idle <- w }()
	ctx, cancel := limited(ctx, k.options.timeout(DefaultExecTimeout))
	defer cancel()
	return w.call(ctx, r)
}

var errStopping = errors.New("the operator is stopping")

// Close ends the programs after their current calls. It closes their input, and kills those
// that do not exit. Later calls fail.
func (k *Kept) Close() {
	close(k.closed)
	for range k.n {
		(<-k.idle).close()
	}
}

// Delays of restarts.
const (
	firstRestart = 100 * time.Millisecond
	lastRestart  = 30 * time.Second
)

// worker is one kept program, which may not run now.
type worker struct {
	options *Options
	running *process
	stderr  *lines
	reader  *bufio.Reader
	drained chan struct{} // closed when stderr has ended
	id      int64

	delay   time.Duration // of the next restart; 0 means that the last call succeeded
	earlier time.Time     // no restart before
}

// line is the input with an id.
type line struct {
	ID int64 `json:"id"`
	Input
}

func (w *worker) call(ctx context.Context, r *Request) (Output, error) {
	if err := w.ensure(); err != nil {
		return Output{}, err
	}
	w.id++
	input, err := json.Marshal(line{w.id, r.Input})
	if err != nil {
		return Output{}, fmt.Errorf("encode the input: %w", err)
	}
	w.stderr.begin(r.Log)
	type response struct {
		text []byte
		err  error
	}
	answered := make(chan response, 1)
	stdin, reader := w.running.stdin, w.reader
	go func() { // ends when the pipes are closed
		if _, err := stdin.Write(append(input, '\n')); err != nil {
			answered <- response{nil, err}
			return
		}
		text, err := readLine(reader, w.options.output())
		answered <- response{text, err}
	}()
	select {
	case got := <-answered:
		if got.err != nil {
			return Output{}, w.fail(got.err)
		}
		out, err := w.parse(got.text)
		if err != nil {
			return Output{}, err
		}
		w.delay = 0
		return out, nil
	case <-ctx.Done():
		w.end()
		<-answered
		w.postpone()
		return Output{}, context.Cause(ctx)
	}
}

// parse reads the response. If it has the id of another call, the program is out of step, and
// parse ends it.
func (w *worker) parse(text []byte) (Output, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return Output{}, w.fail(fmt.Errorf("the response is not a JSON object: %w; it begins with %q", err, cut(string(text), 60)))
	}
	var id int64
	if err := json.Unmarshal(keys["id"], &id); err != nil || id != w.id {
		return Output{}, w.fail(fmt.Errorf("the response has the id %s, not %d", keys["id"], w.id))
	}
	delete(keys, "id")
	rest, err := json.Marshal(keys)
	if err != nil {
		return Output{}, err
	}
	return ParseOutput(rest)
}

// fail ends the program after an error.
func (w *worker) fail(err error) error {
	p, drained := w.running, w.drained
	select {
	case <-p.exited: // by itself
	case <-time.After(100 * time.Millisecond): // it may be about to exit
	}
	exited := false
	select {
	case <-p.exited:
		exited = true
		select {
		case <-drained:
		case <-time.After(pipeDelay):
		}
	default:
	}
	last := w.stderr.lastLine()
	w.end()
	w.postpone()
	if exited {
		if failed := exitError(p.err, last); failed != nil {
			return fmt.Errorf("the program exited: %w", failed)
		}
		return errors.New("the program exited without a response")
	}
	return err
}

// ensure starts the program if it does not run.
func (w *worker) ensure() error {
	if w.running != nil {
		select {
		case <-w.running.exited:
			w.end()
		default:
			return nil
		}
	}
	if left := time.Until(w.earlier); left > 0 {
		return &Error{After: &left, Err: errors.New("the program has failed; it is restarted after the delay")}
	}
	p, err := start(w.options.args(), append(w.options.environment(), "GOPF_KEEP=1"), w.options.Dir)
	if err != nil {
		w.postpone()
		return fmt.Errorf("start the program: %w", err)
	}
	w.running, w.stderr, w.reader = p, &lines{}, bufio.NewReader(p.stdout)
	drained, stderr := make(chan struct{}), w.stderr
	w.drained = drained
	go func() { // ends when the pipe is closed
		defer close(drained)
		stderr.read(p.stderr)
	}()
	return nil
}

func (w *worker) end() {
	if w.running != nil {
		w.running.stop()
		w.running.close()
		w.stderr.mute()
		<-w.drained
		w.running = nil
	}
}

// postpone delays the next start.
func (w *worker) postpone() {
	w.delay = min(max(2*w.delay, firstRestart), lastRestart)
	w.earlier = time.Now().Add(w.delay)
}

// close ends the program gracefully: its input ends first.
func (w *worker) close() {
	if w.running == nil {
		return
	}
	closeAll(w.running.stdin)
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-w.running.exited:
		select {
		case <-w.drained:
		case <-time.After(pipeDelay):
		}
	case <-timer.C:
	}
	w.end()
}

// readLine reads one line of at most limit bytes. Empty lines are skipped.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(text)+len(part)) > limit {
			return nil, fmt.Errorf("the response has more than %d bytes", limit)
		}
		text = append(text, part...)
		switch {
		case err == nil && len(bytes.TrimSpace(text)) == 0:
			text = text[:0]
		case err == nil:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("read the response: %w", err)
		}
	}
}
