package call

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gopf.dev/gopf/internal/queue"
)

// Kept calls programs that stay alive: each gets JSON lines and responds with one line per
// call. A program has one call at a time, so a call that hangs stops only its own program.
// Namespaces take turns, and one cannot have all programs if there are several. For reviews,
// this holds for clients: see [Acquire].
//
// # Failures
//
// A program may exit during a call, hang, or violate the contract. Then Kept ends it, and the
// call fails. The next calls of the same namespace wait, with a backoff from 100 ms to 30 s.
// Calls of other namespaces do not wait: they start the program again at once.
//
// A program that cannot start, or that exits before it reads its input, has not seen the call.
// So the call does not fail: it waits, and the program is started again with a backoff.
type Kept struct {
	options  Options
	slots    *queue.Slots // one for each program
	backoffs backoffs
	closed   chan struct{}

	mu       sync.Mutex
	all      []*worker
	idle     []*worker // the one that was used last is the last
	stopping bool
	busy     sync.WaitGroup // the workers that are not idle

	unstarted, failing notice
}

// NewKept returns a caller of kept programs. They are started when calls need them.
func NewKept(o Options) *Kept {
	n := max(o.Call.Processes, 1)
	k := &Kept{options: o, slots: queue.NewSlots(n), closed: make(chan struct{})}
	for range n {
		k.all = append(k.all, &worker{options: &k.options})
	}
	k.idle = append(k.idle, k.all...)
	return k
}

var errStopping = errors.New("the operator is stopping")

// reviewPatience limits the time in which a review waits for the restart of a program. A user
// waits for its response, and it holds capacity for other reviews.
const reviewPatience = time.Second

// Call sends one line to a program that has no other call, and waits for one if there is
// none.
func (k *Kept) Call(ctx context.Context, r *Request) (Output, error) {
	who := tenantOf(r)
	for {
		if err := k.awaitTenant(ctx, r, who); err != nil {
			return Output{}, err
		}
		release, ok := Acquire(k.slots, r.Input.Review, r.Namespace, ctx.Done(), k.closed)
		if !ok && ctx.Err() != nil {
			return Output{}, context.Cause(ctx)
		}
		if !ok {
			return Output{}, errStopping
		}
		if left, _ := k.backoffs.left(who); left > 0 { // another call has failed meanwhile
			release()
			continue
		}
		return k.call(ctx, r, who, release)
	}
}

// awaitTenant waits for the end of the backoff of the tenant. It holds no slot meanwhile.
func (k *Kept) awaitTenant(ctx context.Context, r *Request, who tenant) error {
	for {
		left, over := k.backoffs.left(who)
		if left == 0 {
			return nil
		}
		if r.Input.Review != nil && left > reviewPatience {
			return fmt.Errorf("the program has failed for other reviews of the namespace; it gets the next one in %v", left.Round(time.Second))
		}
		if err := k.sleep(ctx, left, over); err != nil {
			return err
		}
	}
}

// sleep waits for the delay, or until over is closed, which may be nil.
func (k *Kept) sleep(ctx context.Context, delay time.Duration, over <-chan struct{}) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-k.closed:
		return errStopping
	}
	return nil
}

// call calls a program. The caller must hold a slot, which release gives back when the program
// is idle again.
func (k *Kept) call(ctx context.Context, r *Request, who tenant, release func()) (Output, error) {
	w, ok := k.take(who)
	if !ok {
		release()
		return Output{}, errStopping
	}
	defer func() {
		if w.left == nil {
			k.put(w)
			release()
			return
		}
		go func() { // ends when k is closed, or earlier
			began := w.left.began
			w.settle(k.closed)
			k.judge(r, who, w, began)
			k.put(w)
			release()
		}()
	}()
	return k.repeat(ctx, w, r, who)
}

// repeat calls the program until it has seen the call.
func (k *Kept) repeat(ctx context.Context, w *worker, r *Request, who tenant) (Output, error) {
	for {
		began := time.Now()
		out, err := k.try(ctx, w, r)
		if w.left != nil {
			return out, err
		}
		var unstarted *startError
		if !errors.As(err, &unstarted) {
			k.judge(r, who, w, began)
			return out, err
		}
		left := time.Until(w.earlier)
		if r.fails() || r.Input.Review != nil && left > reviewPatience {
			return Output{}, err
		}
		if left > 0 && k.unstarted.due() {
			r.Log.Warn("The program cannot be started. Calls of the handler wait until it can.", "error", err, "next", left.Round(time.Millisecond))
		}
		if stopped := k.sleep(ctx, left, nil); stopped != nil {
			return Output{}, fmt.Errorf("%w; until then, the program could not be started: %w", stopped, err)
		}
	}
}

// try is one attempt to call the program. The time limit of the call begins here: a wait for
// the program does not count.
func (k *Kept) try(ctx context.Context, w *worker, r *Request) (Output, error) {
	ctx, cancel := limited(ctx, k.options.timeout(DefaultExecTimeout))
	defer cancel()
	return w.call(ctx, r)
}

// judge counts the outcome of a call for its tenant.
func (k *Kept) judge(r *Request, who tenant, w *worker, began time.Time) {
	if w.running != nil {
		k.backoffs.succeed(who, began)
		return
	}
	if delay := k.backoffs.fail(who, began); delay >= time.Second && k.failing.due() {
		r.Log.Warn("Calls for objects of a namespace end the program again and again. Other calls of the namespace wait.",
			"namespace", who.namespace, "delay", delay)
	}
}

// take returns the idle worker that suits the tenant best. A slot guarantees that there is
// one.
func (k *Kept) take(who tenant) (w *worker, ok bool) {
	suspect := k.backoffs.suspects(who)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopping {
		return nil, false
	}
	best := 0
	for i, one := range k.idle {
		if one.suits(who, suspect) > k.idle[best].suits(who, suspect) {
			best = i
		}
	}
	w = k.idle[best]
	k.idle = append(k.idle[:best], k.idle[best+1:]...)
	k.busy.Add(1)
	w.tenant = who
	return w, true
}

func (k *Kept) put(w *worker) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle = append(k.idle, w)
	k.busy.Done()
}

// Close ends the programs after their current calls. It closes their input, and kills those
// that do not exit. Later calls fail.
func (k *Kept) Close() {
	k.mu.Lock()
	k.stopping = true
	k.mu.Unlock()
	close(k.closed)
	k.busy.Wait()
	for _, w := range k.all {
		w.close()
	}
}
