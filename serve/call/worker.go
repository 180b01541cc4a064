package call

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/jsonvalue"
)

// worker is one kept program, which may not run now.
type worker struct {
	options *Options
	tenant  tenant   // of the last call
	running *process // nil after a call that ended the program
	stderr  *lines
	reader  *bufio.Reader
	drained chan struct{} // closed when stderr has ended
	id      int64
	left    *abandoned // the running call whose caller has left; nil means none

	responded bool          // the running program has responded to a call
	delay     time.Duration // of the next start; 0 means that the last program responded
	earlier   time.Time     // no start before
	why       error         // the last program did not start
}

// startError means that the program has not seen the call: it did not start, or it exited
// before it read its input.
type startError struct{ err error }

func (e *startError) Error() string { return "start the program: " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// line is the input with an id.
type line struct {
	ID int64 `json:"id"`
	Input
}

// response is a line of a program, or why there is none.
type response struct {
	sent int // bytes of the call that are in the pipe
	text []byte
	err  error
}

// abandoned is a call whose caller has left. The program may still respond.
type abandoned struct {
	answered <-chan response
	began    time.Time
	until    time.Time // the program is ended then
}

// reviewTime is the least time that a program has for a review. Any network peer can send
// reviews with a short deadline, or disconnect. It must not end programs that others use.
const reviewTime = 10 * time.Second

// suits returns how well the worker suits a tenant; more is better. A tenant that
// keeps to its workers ends no programs of others. A suspect has ended programs before: if it
// has no worker, it gets one that must be started anyway.
func (w *worker) suits(who tenant, suspect bool) int {
	switch own, alive := w.tenant == who, w.alive(); {
	case own && alive:
		return 3
	case own && w.tenant != tenant{}:
		return 2
	case alive != suspect:
		return 1
	}
	return 0
}

func (w *worker) alive() bool {
	if w.running == nil {
		return false
	}
	select {
	case <-w.running.exited:
		return false
	default:
		return true
	}
}

// call sends the input and waits for the response. If the program was ended, running is nil.
// A [startError] means that the call may be repeated. If the context of a review ends early, the
// program continues, and the caller must call [worker.settle].
func (w *worker) call(ctx context.Context, r *Request) (Output, error) {
	if err := w.ensure(r.Log); err != nil {
		return Output{}, err
	}
	w.id++
	input, release, err := w.options.input(ctx, r, line{w.id, r.Input})
	if err != nil {
		return Output{}, err
	}
	p, answered := w.running, make(chan response, 1)
	go func(reader *bufio.Reader) { // ends when the pipes are closed
		n, err := p.stdin.Write(input)
		input = nil
		release()
		if err != nil {
			answered <- response{n, nil, err}
			return
		}
		text, err := readLine(reader, w.options.output())
		answered <- response{n, text, err}
	}(w.reader)
	began := time.Now()
	got, ok := w.await(answered, ctx.Done(), nil)
	if ok {
		return w.receive(got)
	}
	cause := context.Cause(ctx)
	if r.Input.Review != nil && !errors.Is(cause, errCallTimeout) {
		w.left = &abandoned{answered, began, began.Add(min(w.options.timeout(DefaultExecTimeout), reviewTime))}
		if deadline, ok := ctx.Deadline(); ok && deadline.After(w.left.until) {
			w.left.until = deadline
		}
		return Output{}, cause
	}
	w.end()
	<-answered
	return Output{}, cause
}

// settle waits for the response to the call whose caller has left, and ends the program if there
// is none in time, or if closed is closed.
func (w *worker) settle(closed <-chan struct{}) {
	ctx, cancel := context.WithDeadline(context.Background(), w.left.until)
	defer cancel()
	if got, ok := w.await(w.left.answered, ctx.Done(), closed); ok {
		_, _ = w.receive(got) // it ends a program that is out of step
	} else {
		w.end()
		<-w.left.answered
	}
	w.left = nil
}

// await waits for the response. ok is false if one of the channels is closed first.
func (w *worker) await(answered <-chan response, done, closed <-chan struct{}) (got response, ok bool) {
	select {
	case got = <-answered:
		return got, true
	case <-w.running.exited:
		return w.last(answered), true
	case <-done:
	case <-closed:
	}
	return response{}, false
}

// receive returns the output of a response.
func (w *worker) receive(got response) (Output, error) {
	if got.err != nil {
		return Output{}, w.fail(got.err, got.sent)
	}
	return w.parse(got)
}

// last returns the output of a program from before its exit.
func (w *worker) last(answered <-chan response) response {
	closeAll(w.running.stdin) // ends a write
	late := time.NewTimer(pipeDelay)
	defer late.Stop()
	select {
	case got := <-answered:
		return got
	case <-late.C: // a process that left the group holds the pipe
		closeAll(w.running.stdout)
		return <-answered
	}
}

// parse reads the response. If it has the id of another call, the program is out of step, and
// parse ends it.
func (w *worker) parse(got response) (Output, error) {
	if err := jsonvalue.Check(got.text, len(got.text)); err != nil {
		return Output{}, w.fail(fmt.Errorf("the response is too large: %w", err), got.sent)
	}
	fields, err := jsonvalue.Object(got.text)
	if err != nil {
		return Output{}, w.fail(fmt.Errorf("the response is not a JSON object: %w; it begins with %q", err, cut(string(got.text), 60)), got.sent)
	}
	if id, ok := fields["id"].(int64); !ok || id != w.id {
		return Output{}, w.fail(fmt.Errorf("the response has the id %s, not %d", cut(fmt.Sprint(fields["id"]), 60), w.id), got.sent)
	}
	w.responded, w.delay = true, 0
	delete(fields, "id")
	return OutputOf(fields)
}

// fail ends the program after an error. sent is the number of bytes of the call that were
// written to the program.
func (w *worker) fail(err error, sent int) error {
	p, drained := w.running, w.drained
	select {
	case <-p.exited: // by itself
	case <-time.After(100 * time.Millisecond): // it may be about to exit
	}
	exited, unread := false, false
	select {
	case <-p.exited:
		exited = true
		select {
		case <-drained:
		case <-time.After(pipeDelay):
		}
		unread = p.unread() >= int64(sent)
	default:
	}
	last := w.stderr.lastLine()
	w.end()
	if !exited {
		return err
	}
	err = errors.New("the program exited without a response")
	if failed := exitError(p.err, last); failed != nil {
		err = fmt.Errorf("the program exited: %w", failed)
	}
	if !unread {
		return err
	}
	if !w.responded { // one that has worked before is started again at once
		return w.postpone(err)
	}
	return &startError{err}
}

// ensure starts the program if it does not run. log gets its lines, from the start on: they
// say why a program exits at once.
func (w *worker) ensure(log *slog.Logger) error {
	if w.alive() {
		w.stderr.begin(log)
		return nil
	}
	w.end()
	if time.Until(w.earlier) > 0 {
		return &startError{w.why}
	}
	p, err := start(w.options.args(), append(w.options.environment(), "GOPF_KEEP=1"), w.options.Dir, true)
	if err != nil {
		return w.postpone(err)
	}
	w.running, w.stderr, w.reader, w.responded = p, &lines{log: log}, bufio.NewReader(p.stdout), false
	drained, stderr := make(chan struct{}), w.stderr
	w.drained = drained
	go func() { // ends when the pipe is closed
		defer close(drained)
		stderr.read(p.stderr)
	}()
	return nil
}

// postpone delays the next start, because the program did not start.
func (w *worker) postpone(why error) error {
	w.delay, w.why = grow(w.delay), why
	w.earlier = time.Now().Add(w.delay)
	return &startError{why}
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
