package peering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
)

const (
	// removeLimit limits the removal of our record, including retries.
	removeLimit = 5 * time.Second

	// calm is the pause before our record is written again after another operator
	// removed it. Without it, two operators whose clocks disagree would write and
	// remove it in a tight loop.
	calm = 5 * time.Second

	// tidying is the maximum random delay before expired records are removed. Usually
	// one of several operators removes them, and the others see the result.
	tidying = time.Second

	// maxAttempt limits a request. For short lifetimes the limit is lower. firstPause
	// is the first pause after a failure.
	maxAttempt = 10 * time.Second
	firstPause = time.Second

	// longestAbsence is the maximum time between two attempts while there is no object. Most
	// namespaces have none, and an operator may serve thousands. The watch shows a new one.
	longestAbsence = 10 * time.Minute
)

// order is the work that follows from the newest state of the object.
type order struct {
	absent  bool     // our record is missing
	dead    []string // records to remove
	version string   // resource version in which they were seen
}

func orderOf(d Decision, version string) order {
	if version == "" {
		return order{} // there is no object to write to
	}
	return order{absent: d.Absent, dead: d.Dead, version: version}
}

// writer sends all writes of one member sequentially.
type writer struct {
	Config
	client *kube.Client
	orders latest[order]

	renewAt  time.Time
	absentAt time.Time // when to renew because our record is missing; zero if it is not
	dead     order     // records to remove
	deadAt   time.Time // when to remove them; zero if there are none
	tidied   string    // the version in which that was tried

	renewed  time.Time             // time of the last success
	missing  int                   // the number of last attempts for which there was no object
	written  bool                  // our record may be in the object
	failures int                   // failed renewals in a row
	told     loglimit.Once[string] // kinds of failures since the last success
	dropped  bool                  // it was logged that the server drops our record
}

func newWriter(c Config) *writer {
	// A writer has its own pauses: the client's retries would outlast the lifetime of a
	// record.
	return &writer{Config: c, client: c.Client.WithBackoffs(nil), orders: newLatest[order]()}
}

// run renews our record and removes expired ones until ctx ends. Then it removes our
// record. It waits for a renewal in flight first: otherwise it might arrive after the
// removal.
func (w *writer) run(ctx context.Context) {
	writes, cancel := outlive(ctx, removeLimit)
	defer cancel()
	defer func() { w.leave(writes) }()
	w.renewAt = time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(w.next()))
		select {
		case <-ctx.Done():
			return
		case o := <-w.orders:
			w.take(o)
		case <-timer.C:
			if ctx.Err() != nil {
				return
			}
			w.work(writes, time.Now())
		}
	}
}

// take schedules an order. It replaces the previous one.
func (w *writer) take(o order) {
	now := time.Now()
	if w.missing > 0 && o.version != "" { // the object has been created
		w.missing, w.renewAt = 0, now
	}
	switch {
	case !o.absent:
		w.absentAt = time.Time{}
	case w.absentAt.IsZero() && w.failures == 0:
		w.absentAt = w.renewed.Add(calm)
	}
	switch {
	case len(o.dead) == 0 || o.version == w.tidied:
		w.deadAt = time.Time{}
	case w.deadAt.IsZero():
		w.deadAt = now.Add(rand.N(tidying))
	}
	w.dead = o
}

// next returns the time of the next write.
func (w *writer) next() time.Time {
	next := w.renewAt
	for _, at := range []time.Time{w.absentAt, w.deadAt} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

func (w *writer) work(ctx context.Context, now time.Time) {
	if due(w.renewAt, now) || due(w.absentAt, now) {
		w.renew(ctx, now)
	}
	if due(w.deadAt, now) {
		w.tidy(ctx)
	}
}

func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// renew writes our record.
func (w *writer) renew(ctx context.Context, now time.Time) {
	w.absentAt = time.Time{}
	w.renewAt = now.Add(Interval(w.Lifetime, leastAhead+time.Second*time.Duration(rand.N(6))))
	record := Record{Identity: w.Identity, Priority: w.Priority, Lifetime: w.Lifetime, LastSeen: now}
	if record.Value() == nil {
		return // no record without a lifetime
	}
	w.written = true
	body, err := w.patch(ctx, map[string]any{"status": map[string]any{w.Identity: record.Value()}})
	switch {
	case err == nil:
		w.renewed, w.missing, w.failures = now, 0, 0
		w.told.Reset()
		w.say("ok")
		w.verify(body)
	case apierrors.IsNotFound(err):
		w.renewAt = now.Add(min(w.renewAt.Sub(now)<<min(w.missing, 16), longestAbsence))
		w.written, w.missing, w.failures = false, w.missing+1, 0
		w.say("not found")
	default:
		// Retry soon enough to be in time, if possible.
		growing := backoff.Backoff{First: firstPause, Most: max(w.Lifetime/6, firstPause)}
		w.failures++
		w.renewAt = time.Now().Add(w.jittered(growing.After(min(w.failures, 11))))
		w.tell(err, "Cannot renew the record of this operator in the peering object; retrying.")
	}
}

// jittered returns the delay of a retry with jitter.
func (w *writer) jittered(d time.Duration) time.Duration {
	return w.client.Jitter().Shorten(d, jitter.Slight)
}

func (w *writer) say(result string) {
	if result == "ok" && w.Stealth {
		return
	}
	w.Log.Debug(fmt.Sprintf("Keep-alive in '%s' %s: %s.", w.Name, w.Place, result), "resource", w.Place.Info.String())
}

// verify logs if the server accepted our record but did not store it.
func (w *writer) verify(body *object.Body) {
	if _, kept := body.Lookup("status", w.Identity); kept || w.dropped {
		return
	}
	w.dropped = true
	w.Log.Warn("The peering object does not keep the record of this operator. Its CRD must have x-kubernetes-preserve-unknown-fields in the status.",
		"peering", w.Name, "resource", w.Place.Info.String())
}

// tidy removes expired records, unless the object has changed since they were seen: an
// operator may have returned, or the records were removed already. The changed object
// is evaluated again.
func (w *writer) tidy(ctx context.Context) {
	w.deadAt, w.tidied = time.Time{}, w.dead.version
	nulls := map[string]any{}
	for _, id := range w.dead.dead {
		nulls[id] = nil
	}
	_, err := w.patch(ctx, map[string]any{
		"metadata": map[string]any{"resourceVersion": w.dead.version},
		"status":   nulls,
	})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		w.tell(err, "Cannot remove expired records from the peering object.")
	}
}

// leave removes our record.
func (w *writer) leave(ctx context.Context) {
	for w.written {
		_, err := w.patch(ctx, map[string]any{"status": map[string]any{w.Identity: nil}})
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		if backoff.Sleep(ctx, w.jittered(firstPause)) != nil {
			w.Log.Warn("Cannot remove the record of this operator; it stays in the peering object until its lifetime ends.",
				"peering", w.Name, "error", err)
			return
		}
	}
}

// patch changes the peering object. All changes are idempotent, so a lost response
// needs no special handling.
func (w *writer) patch(ctx context.Context, change map[string]any) (*object.Body, error) {
	ctx, cancel := context.WithTimeout(ctx, max(min(w.Lifetime/4, maxAttempt), firstPause))
	defer cancel()
	return write(ctx, w.client, w.Place, w.Name, change)
}

func write(ctx context.Context, client *kube.Client, place Place, name string, change map[string]any) (*object.Body, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return client.Patch(ctx, target(place, name), types.MergePatchType, body)
}

// tell logs each kind of failure once until a success.
func (w *writer) tell(err error, message string) {
	kind := message + failure(err)
	if !w.told.First(kind) {
		return
	}
	attrs := []any{"peering", w.Name, "resource", w.Place.Info.String(), "error", err}
	if apierrors.IsForbidden(err) {
		attrs = append(attrs, "needed", "the verbs list, watch and patch for "+resource(target(w.Place, w.Name)))
	}
	w.Log.Warn(message, attrs...)
}

// resource returns the written resources as RBAC roles name them.
func resource(t kube.Target) string {
	name := t.Info.Plural
	if t.Subresource != "" {
		name += " and " + t.Info.Plural + "/" + t.Subresource
	}
	return name + " in the group " + t.Info.Group
}

// failure returns the kind of a failure.
func failure(err error) string {
	if s, ok := kube.Refused(err); ok {
		return http.StatusText(int(s.Code))
	}
	var unreachable *kube.UnreachableError
	if errors.As(err, &unreachable) {
		return "unreachable"
	}
	return "other"
}

// outlive returns a context that ends some time after ctx.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}
