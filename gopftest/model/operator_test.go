package model_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/storage"
)

const (
	group    = "model.dev"
	resource = "model.dev/v1/things"
)

type (
	thing  = gopf.Unstructured
	change = gopf.Change[thing]
)

// declare declares the operator of a process.
func (d declaration) declare(p *process) *gopf.Operator {
	op := gopf.New()
	s := &op.Settings
	s.Peering.Standalone, s.Posting.Enabled = true, false
	s.Scanning.Disabled = !d.scanning
	s.Queueing.WorkerLimit, s.Execution.MaxWorkers = d.workerLimit, d.maxWorkers
	s.Execution.Lifecycle = map[string]gopf.Lifecycle{
		"asap": gopf.ASAP, "all": gopf.AllAtOnce, "one": gopf.OneByOne, "random": gopf.Randomized, "shuffled": gopf.Shuffled,
	}[d.lifecycle]
	switch d.storage {
	case "status":
		s.Persistence.Progress, s.Persistence.Base = storage.NewStatusProgress("kopf"), storage.NewStatusBase("kopf")
	case "smart":
		s.Persistence.Progress = storage.SmartProgress(storage.NewAnnotationProgress("kopf.zalando.org"), storage.NewStatusProgress("kopf"))
	case "state":
		s.Persistence = gopf.StateInStatus("kopf")
	case "moving": // every process moves the state
		if p.n%2 == 0 {
			s.Persistence = gopf.StateInStatus("kopf")
		} else {
			s.Persistence.FormerStatusKeys = []string{"kopf"}
		}
	case "elsewhere":
		s.Persistence.Progress, s.Persistence.Base = outsideProgress{p}, outsideBase{p}
	}
	for _, h := range d.handlers {
		h.declare(p, gopf.For[thing](op, resource))
	}
	return op
}

func (h handler) declare(p *process, x *gopf.Resource[thing]) {
	switch h.filter.by {
	case "label":
		x = x.WithLabel("tier", gopf.Is(h.filter.value))
	case "field":
		x = x.WithField("spec.a", gopf.Is(h.filter.value))
	case "when":
		x = x.When(func(s *gopf.Candidate[thing]) bool { return h.filter.matches(s.Raw()) })
	}
	switch h.kind {
	case "change":
		x.On(h.on, h.id, h.changeFunc(p, h.id, true), h.options()...)
	case "field":
		x.Field("spec."+h.field).On(h.on, h.id, h.changeFunc(p, h.storedID(""), true), h.options()...)
	case "event":
		x.OnEvent(h.id, func(_ context.Context, e *gopf.WatchEvent[thing]) error {
			p.oracle.event(p, e)
			return nil
		})
	case "daemon":
		h.daemon(p, x)
	case "timer":
		h.timer(p, x)
	case "index":
		p.index = gopf.Index(x, h.id, func(_ context.Context, s *gopf.Subject[thing]) (map[string]string, error) {
			a, _ := gopf.ValueAt[string](s, "spec.a")
			return map[string]string{a: s.Object.GetNamespace() + "/" + s.Object.GetName()}, nil
		})
	}
}

// storedID returns the id under which records and results are stored.
func (h handler) storedID(parent string) string {
	switch {
	case parent != "":
		return parent + "/" + h.id
	case h.kind == "field":
		return h.id + "/spec." + h.field
	}
	return h.id
}

func (h handler) options() []gopf.ChangeOption {
	opts := []gopf.ChangeOption{gopf.Backoff(h.delay)}
	if h.optional {
		opts = append(opts, gopf.Optional())
	}
	if h.retries > 0 {
		opts = append(opts, gopf.MaxAttempts(h.retries))
	}
	if h.formerly != "" {
		opts = append(opts, gopf.Formerly(h.formerly))
	}
	return opts
}

// changeFunc returns a change handler that acts as declared, and reports to the oracle.
func (h handler) changeFunc(p *process, id string, top bool) gopf.ChangeFunc[thing] {
	return func(ctx context.Context, c *change) error {
		call := p.oracle.begin(p, h, id, top, c)
		err := h.perform(ctx, p, id, c, call)
		final := err == nil || h.retries > 0 && c.Retry+1 >= h.retries || errors.As(err, new(*gopf.PermanentError))
		if context.Cause(ctx) != nil && err != nil {
			final = false
		}
		p.oracle.end(call, final, err)
		return err
	}
}

func (h handler) perform(ctx context.Context, p *process, id string, c *change, call *call) error {
	if h.patch == "twice" {
		me := &unstructured.Unstructured{Object: map[string]any{}}
		me.SetAPIVersion("model.dev/v1")
		me.SetKind("Thing")
		me.SetNamespace(c.Object.GetNamespace())
		me.SetName(c.Object.GetName())
		p.oracle.asks(call, "status", "")
		if err := c.API.Merge(ctx, me, map[string]any{"status": map[string]any{"op": map[string]any{ownKey(id): "Working"}}}, h.mergeOptions(p)...); err != nil {
			return err
		}
		if me.GetUID() != c.Object.GetUID() {
			p.oracle.strayed(string(me.GetUID()), ownKey(id))
		}
	}
	if !sleep(ctx, h.work) {
		return ctx.Err()
	}
	h.ask(p, id, c, call)
	if c.Retry < h.fails {
		err := errors.New("not yet")
		switch h.how {
		case "retry":
			return gopf.RetryAfter(h.delay, err)
		case "wait":
			return gopf.Wait(h.delay, "not yet")
		case "permanent":
			return gopf.Permanent(err)
		}
		return err
	}
	for _, s := range h.subs {
		c.Sub(s.id, s.changeFunc(p, s.storedID(id), false), s.options()...)
	}
	if len(h.subs) > 0 {
		if err := c.RunSubs(ctx, gopf.Parallel(h.parallel)); err != nil && !errors.As(err, new(*gopf.SubsError)) {
			return err
		}
	}
	if h.result {
		c.SetResult(p.oracle.result(call))
	}
	return nil
}

func (h handler) mergeOptions(p *process) []client.MergeOption {
	if p.statusSub() {
		return []client.MergeOption{client.StatusSubresource()}
	}
	return nil
}

// ask adds the handler's change to the patch: a value that depends on the users' state.
func (h handler) ask(p *process, id string, c *change, call *call) {
	key, value := ownKey(id), digest(call.state)
	switch h.patch {
	case "status", "twice":
		c.Patch.Set("status.op."+key, value)
	case "label":
		c.Patch.Label(ownPrefix+key, value)
	case "annotation":
		c.Patch.Annotate(ownPrefix+key, value)
	case "spec":
		c.Patch.Set("spec."+ownSpec+"."+key, value)
	case "edit":
		c.Patch.Edit(func(o thing) {
			all := o.GetAnnotations()
			all[ownPrefix+key] = value
			o.SetAnnotations(all)
		})
	default:
		return
	}
	p.oracle.asks(call, map[string]string{"twice": "status", "edit": "annotation"}[h.patch], value)
}

// ownKey returns the last key of the path that a handler writes. A renamed handler
// writes to the same path as before: otherwise its first call after a restart would
// change the object, and so cause an update.
func ownKey(id string) string { return strings.NewReplacer("/", "-", ".", "-", "-new", "").Replace(id) }

func (h handler) daemon(p *process, x *gopf.Resource[thing]) {
	var opts []gopf.DaemonOption
	if h.optional {
		opts = append(opts, gopf.Optional())
	}
	x.Daemon(h.id, func(ctx context.Context, d *gopf.Daemon[thing]) error {
		leave := p.oracle.daemon(p, h, d)
		defer leave()
		if h.patch == "flush" {
			for _, v := range []string{"Ready", "Checking", "Ready"} {
				d.Patch.Set("status.op."+h.id, v)
				if err := d.Flush(ctx); err != nil {
					p.oracle.flushed(p, d, "")
					return gopf.RetryAfter(time.Second, err)
				}
				p.oracle.flushed(p, d, v)
			}
		}
		<-ctx.Done()
		if p.isDead() {
			return nil
		}
		time.Sleep(h.work)
		return nil
	}, opts...)
}

func (h handler) timer(p *process, x *gopf.Resource[thing]) {
	var opts []gopf.TimerOption
	if h.optional {
		opts = append(opts, gopf.Optional())
	}
	x.Timer(h.id, h.delay, func(_ context.Context, t *gopf.Tick[thing]) error {
		p.oracle.tick(p, t)
		if h.patch == "status" {
			t.Patch.Set("status.op."+h.id, digest(userState(t.Raw())))
		}
		return nil
	}, opts...)
}

// sleep waits for d. It returns false if the context is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
