package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// ReviewerOptions bound what reviews can cost. Begin with
// [DefaultReviewerOptions]: here zero means zero, not the default.
type ReviewerOptions struct {
	// MaxBody is the size of the largest review that is received, in bytes. A review
	// carries the old and the new object, and the API server stores at most 1.5 MiB of
	// an object: two of them, and the request around them, fit. Larger reviews are
	// refused. Default: 4 MiB.
	MaxBody int64
	// ReadTimeout is how long the body of a review may take to arrive, not counting
	// the time for which it waits for room. Default: 5s.
	ReadTimeout time.Duration
	// Timeout is how long a review may take in all; if the API server gives less
	// time, that counts. Default: 30s.
	Timeout time.Duration
	// InFlight is how many reviews are handled at the same time. Default: 64.
	InFlight int
	// Bytes limits the bodies that are received, wait or are handled at the same
	// time. If there is no room, bodies that arrive slowly are dropped.
	// Default: 48 MiB.
	Bytes int64
	// Memory limits what reviews that are handled at the same time take when they
	// are decoded, in bytes, as estimated from their bodies. A fifth of it is kept
	// for ordinary reviews. A review that needs more is handled while no other costly
	// one is. Default: 160 MiB.
	Memory int64

	// Memos returns what is kept in memory with an object, nil if nothing is. It
	// is not asked about creations. Nil is as if it always returned nil.
	Memos func(resource kind.Info, uid string) *registry.Memos
	// API is how handlers reach the cluster. Nil is not at all.
	API registry.API
	// Observe, if set, is told of every review, for metrics. It is called
	// concurrently and must be quick.
	Observe func(Observation)

	Log *slog.Logger
}

// DefaultReviewerOptions are the options with the defaults named at the fields.
func DefaultReviewerOptions() ReviewerOptions {
	return ReviewerOptions{
		MaxBody: 4 << 20, ReadTimeout: 5 * time.Second, Timeout: 30 * time.Second,
		InFlight: 64, Bytes: 48 << 20, Memory: 160 << 20, Log: slog.Default(),
	}
}

// Observation is one review that was answered.
type Observation struct {
	ID       string // of the handler; "" if there is none of this name, or none was named
	Allowed  bool
	Code     int // of the HTTP response, or of the denial
	Duration time.Duration
}

// Reviewer answers reviews: POST requests whose path is the id of a handler. It
// is an [http.Handler].
type Reviewer struct {
	ReviewerOptions
	handlers registry.Set
	table    atomic.Pointer[table]
	inbox    *inbox
	lanes    lanes
	busy     atomic.Int32 // reviews that are handled
	limiter  loglimit.Limiter
	leaving  atomic.Bool
	own      atomic.Pointer[Own] // nil until known
}

// NewReviewer makes a reviewer of those of the handlers that are for reviews. It
// refuses all reviews until it is told of the resources.
func NewReviewer(handlers registry.Set, o ReviewerOptions) *Reviewer {
	return &Reviewer{
		ReviewerOptions: o,
		handlers:        handlers.Of(registry.Reviews),
		inbox:           newInbox(max(o.Bytes, 2*o.MaxBody)),
		lanes: lanes{
			ordinary: budget{size: max(1, o.Memory/5)}, costly: budget{size: max(1, o.Memory-o.Memory/5)},
			slots: budget{size: int64(max(1, o.InFlight))},
		},
	}
}

// Discovered tells which resources the cluster has now.
func (v *Reviewer) Discovered(resources []kind.Info) { v.table.Store(newTable(v.handlers, resources)) }

// Load returns how busy the reviewer is now.
func (v *Reviewer) Load() Load {
	load := Load{InFlight: int(v.busy.Load())}
	v.inbox.load(&load)
	for _, b := range []*budget{&v.lanes.ordinary, &v.lanes.costly, &v.lanes.slots} {
		b.load(&load)
	}
	return load
}

// Leave makes clients look for somebody else: their connections are closed, each
// after the reviews that are under way on it. An API server would otherwise keep
// the one that it has to a replica that stops, and send the next review just when
// the replica is gone.
func (v *Reviewer) Leave() { v.leaving.Store(true) }

// Exempt makes the reviewer allow updates that only concern what the operator
// writes for itself, without calling handlers.
func (v *Reviewer) Exempt(own Own) { v.own.Store(&own) }

// Own returns what [Reviewer.Exempt] was told last.
func (v *Reviewer) Own() Own {
	if own := v.own.Load(); own != nil {
		return *own
	}
	return Own{}
}

// httpError is a review that cannot be answered as such.
type httpError struct {
	code int
	err  error
}

func (e *httpError) Error() string { return e.err.Error() }

func refuse(code int, format string, args ...any) error {
	return &httpError{code, fmt.Errorf(format, args...)}
}

// ServeHTTP answers one review.
func (v *Reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if v.leaving.Load() {
		w.Header().Set("Connection", "close") // with HTTP/2, a GOAWAY
	}
	hint, o := strings.TrimPrefix(r.URL.Path, "/"), Observation{}
	ctx, cancel := context.WithTimeout(r.Context(), timeLeft(v.Timeout, r))
	defer cancel()
	table := v.table.Load()
	if table != nil {
		o.ID = table.ids[hint]
	}
	answer, err := v.serve(ctx, w, r, table, hint)
	if refusal, ok := errors.AsType[*httpError](err); ok {
		o.Code = refusal.code
		level := slog.LevelWarn
		if r.Method != http.MethodPost { // somebody who just looks around, such as a probe
			level = slog.LevelDebug
		}
		v.complain(ctx, level, hint, refusal)
		http.Error(w, loglimit.Cut(err.Error()), o.Code)
	} else {
		o.Code, o.Allowed = http.StatusOK, answer.Response.Allowed
		if s := answer.Response.Status; s != nil {
			o.Code = s.Code
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // nobody is left to be told
	}
	if v.Observe != nil {
		o.Duration = time.Since(began)
		v.Observe(o)
	}
}

// complain logs a refusal. Any client can cause it, so there are few of each code.
func (v *Reviewer) complain(ctx context.Context, level slog.Level, hint string, refusal *httpError) {
	if !v.Log.Enabled(ctx, level) {
		return
	}
	ok, suppressed := v.limiter.Allow(strconv.Itoa(refusal.code))
	if !ok {
		return
	}
	attrs := []any{"webhook", loglimit.Cut(hint), "code", refusal.code, "error", loglimit.Cut(refusal.Error())}
	if suppressed > 0 {
		attrs = append(attrs, "suppressed", suppressed)
	}
	v.Log.Log(ctx, level, "A review cannot be answered.", attrs...)
}

func (v *Reviewer) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, table *table, hint string) (outgoing, error) {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return outgoing{}, refuse(http.StatusMethodNotAllowed, "reviews are to be sent by POST")
	case table == nil:
		return outgoing{}, refuse(http.StatusServiceUnavailable, "the resources of the cluster are not known yet")
	case hint != "" && table.ids[hint] == "":
		return outgoing{}, refuse(http.StatusNotFound, "there is no webhook %q", loglimit.Cut(hint))
	}
	letter := v.inbox.open(http.NewResponseController(w), v.ReadTimeout)
	defer v.inbox.close(letter)
	body, err := v.receive(ctx, letter, r)
	if err != nil {
		return outgoing{}, err
	}
	leave, err := v.lanes.enter(ctx, cost(body))
	if err != nil {
		return outgoing{}, refuse(http.StatusServiceUnavailable, "%w", err)
	}
	defer leave()
	v.busy.Add(1)
	defer v.busy.Add(-1)
	in, err := decode(body)
	if err != nil {
		return outgoing{}, refuse(http.StatusBadRequest, "%w", err)
	}
	gvr := schema.GroupVersionResource(in.Request.Resource)
	reviewed := table.resources[gvr]
	if reviewed == nil {
		return outgoing{}, refuse(http.StatusNotFound, "there are no handlers for reviews of %s", gvr)
	}
	req, err := v.request(in.Request, reviewed, r)
	if err != nil {
		return outgoing{}, err
	}
	if own := v.own.Load(); own != nil && own.exempts(req.Review) {
		return in.answer(verdict{}), nil
	}
	return in.answer(v.judge(ctx, reviewed, table.ids[hint], req)), nil
}

// receive takes the body of a review from the wire. No capacity for handling is taken
// before it is complete.
func (v *Reviewer) receive(ctx context.Context, l *letter, r *http.Request) ([]byte, error) {
	body, err := v.inbox.receive(ctx, l, r, v.MaxBody)
	if err == nil {
		return body, nil
	}
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the review is longer than %d bytes", v.MaxBody)
	}
	switch {
	case errors.Is(err, errNoRoom):
		return nil, refuse(http.StatusServiceUnavailable, "%w", err)
	case errors.Is(err, errSlow):
		return nil, refuse(http.StatusRequestTimeout, "receive the review: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it is cut")
	}
	return nil, refuse(http.StatusBadRequest, "receive the review: %w", err)
}

// request is what the handlers are given.
func (v *Reviewer) request(in *request, of *reviewed, r *http.Request) (*registry.Request, error) {
	review, err := in.review(of.managed)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%w", err)
	}
	review.Header = r.Header
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		review.Client = r.TLS.PeerCertificates[0]
	}
	body := review.New
	if body == nil {
		body = review.Old
	}
	req := &registry.Request{
		Body: body, Resource: of.info, Review: review, Started: time.Now(), Key: func() string { return review.UID },
		Patch: &patch.Patch{}, API: v.API,
		Post: func(string, string, string) {}, // the object may never come to exist
		Log:  v.logger(in, of.info, body),
	}
	if v.Memos != nil && review.Operation != "CREATE" {
		req.Memos = v.Memos(of.info, body.UID)
	}
	if req.Memos == nil {
		req.Memos = &registry.Memos{}
	}
	return req, nil
}

// logger attaches the object to all lines about it.
func (v *Reviewer) logger(in *request, info kind.Info, body *object.Body) *slog.Logger {
	return v.Log.With(slog.Group("object",
		slog.String("apiVersion", info.APIVersion()),
		slog.String("kind", info.Kind),
		slog.String("name", in.Name),
		slog.String("namespace", in.Namespace),
		slog.String("uid", body.UID),
	))
}

// judge asks the handlers, one after the other, all of them.
func (v *Reviewer) judge(ctx context.Context, r *reviewed, id string, req *registry.Request) (result verdict) {
	defer func() {
		if p := recover(); p != nil { // in a filter or an edit; handlers have their own
			req.Log.Error("A review is denied because of a panic.", "webhook", id, "panic", p, "stack", string(execute.PanicStack()))
			result = verdict{denial: denied(&execute.PanicError{Value: p}), warnings: req.Review.Warnings}
		}
	}()
	changes := &patch.Patch{}
	for _, h := range r.choose(id, req) {
		if d := v.ask(ctx, h, req, changes); d != nil {
			result.add(d)
		}
	}
	result.warnings = req.Review.Warnings
	if result.denial != nil {
		return result
	}
	raw, err := encodePatch(mutation(req.Body, changes))
	if err != nil {
		req.Log.Error("A review is denied because its changes are no JSON.", "webhook", id, "error", err)
		result.add(denied(err))
	}
	result.patch = raw
	return result
}

// ask calls one handler.
func (v *Reviewer) ask(ctx context.Context, h *registry.Handler, req *registry.Request, changes *patch.Patch) *denial {
	call := *req
	call.Handler, call.Patch = h, &patch.Patch{}
	outcome := execute.Attempt{
		Title: "Webhook", ID: h.ID, DefaultMode: registry.Fail, Started: req.Started, Log: req.Log,
		Call: func(ctx context.Context) (any, error) {
			err := h.Call(ctx, &call)
			if denied, ok := err.(*registry.DeniedError); ok {
				return nil, &registry.PermanentError{Err: denied} // to the log it is one
			}
			return nil, err
		},
	}.Make(ctx)
	err := outcome.Err
	if permanent, ok := err.(*registry.PermanentError); ok {
		if denied, ok := permanent.Err.(*registry.DeniedError); ok {
			err = denied
		}
	}
	switch {
	case err != nil:
		return denied(err)
	case h.Admission.Mutating:
		changes.Absorb(call.Patch)
	case !call.Patch.Empty():
		req.Log.Error("Webhook '"+h.ID+"' only validates: its changes to the object are dropped.", "handler", h.ID)
	}
	return nil
}

// timeLeft is how long a review may take: a little less than the API server says
// it waits, so that the answer comes in time.
func timeLeft(most time.Duration, r *http.Request) time.Duration {
	if asked, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && asked > 0 {
		return min(most, asked-min(asked/10, time.Second))
	}
	return most
}
