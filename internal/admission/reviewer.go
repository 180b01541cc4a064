package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

// ReviewerOptions limit the resources that reviews may use. Start with
// [DefaultReviewerOptions]: here zero means zero, not the default.
type ReviewerOptions struct {
	// MaxBody limits the size of a review in bytes. A review contains the old and the
	// new object, and the API server stores at most 1.5 MiB of each, so the default has
	// room for both. Larger reviews are refused. Default: 4 MiB.
	MaxBody int64
	// ReadTimeout limits the time for receiving the body of a review, not counting the
	// time for which it waits for room. Default: 5s.
	ReadTimeout time.Duration
	// Timeout limits the total time of a review. If the API server requests a shorter
	// timeout, that one applies. Default: 30s.
	Timeout time.Duration
	// InFlight limits the reviews of one client that are handled concurrently. A third
	// more can be handled for other clients. One namespace of a client can have three
	// quarters. Namespaces without a review can have one each beyond that, up to three quarters
	// of this number. Default: 64.
	InFlight int
	// Bytes limits the memory for the bodies of all reviews. If there is no room, bodies
	// that arrive slowly are dropped. Default: 48 MiB.
	Bytes int64
	// Memory limits the memory for decoded reviews that are handled concurrently, in
	// bytes, as estimated from their bodies. A fifth of it is reserved for ordinary
	// reviews. One namespace can have 9/16 of the rest. A review that exceeds this counts as
	// 9/16: others can have 7/16 in addition to its real memory.
	// Default: 96 MiB.
	Memory int64

	// Memos returns the values that handlers keep with an object; nil means none. It is
	// not called for creations. May be nil.
	Memos func(resource kind.Info, uid string) *handler.Memos
	// API gives handlers access to the cluster. May be nil.
	API handler.API
	// Observe is called after every review, for metrics. It is called concurrently and
	// must be quick. May be nil.
	Observe func(Observation)

	Log *slog.Logger
}

// DefaultReviewerOptions returns the options with all defaults.
func DefaultReviewerOptions() ReviewerOptions {
	return ReviewerOptions{
		MaxBody: 4 << 20, ReadTimeout: 5 * time.Second, Timeout: 30 * time.Second,
		InFlight: 64, Bytes: 48 << 20, Memory: 96 << 20, Log: slog.Default(),
	}
}

// LimitMemory lowers the limits of memory for a process with this memory limit: a quarter of
// it is for decoded reviews, and a fifth for bodies. The rest is for turns, which reviews
// never wait for.
func (o *ReviewerOptions) LimitMemory(limit int64) {
	o.Memory, o.Bytes = min(o.Memory, limit/4), min(o.Bytes, limit/5)
}

// Observation describes one answered review.
type Observation struct {
	ID       string // the id of the handler; "" means that the URL has none or an unknown one
	Allowed  bool
	Code     int // the code of the HTTP response, or of the denial
	Duration time.Duration
}

// Reviewer is an [http.Handler] that answers admission reviews: POST requests whose path
// is the id of a handler.
type Reviewer struct {
	ReviewerOptions
	handlers handler.Set
	table    atomic.Pointer[table]
	inbox    *inbox
	lanes    lanes
	busy     atomic.Int32 // reviews that are being handled
	limiter  loglimit.Limiter
	leaving  atomic.Bool
	running  sync.WaitGroup      // handlers whose clients may have canceled the review
	own      atomic.Pointer[Own] // see Exempt; may be nil
	lines    sync.Map            // *lines by the id of the handler
}

// NewReviewer returns a reviewer with the review handlers among the handlers. It refuses
// all reviews until [Reviewer.Discovered] is called.
func NewReviewer(handlers handler.Set, o ReviewerOptions) *Reviewer {
	return &Reviewer{
		ReviewerOptions: o,
		handlers:        handlers.Of(handler.Reviews),
		inbox:           newInbox(max(o.Bytes, 2*o.MaxBody)),
		lanes: lanes{
			ordinary: splitBudget(max(1, o.Memory/5), smallCost/2), costly: newBudget(max(1, o.Memory-o.Memory/5)),
			slots: slotsFor(int64(max(1, o.InFlight))),
		},
	}
}

// slotsFor returns the budget for the number of reviews. Its spare is as much as one client can have.
func slotsFor(inFlight int64) budget {
	return budget{size: inFlight + max(1, inFlight/3), most: inFlight, each: threeQuarters(inFlight), spare: inFlight, crumb: 1}
}

// Discovered sets the resources of the cluster.
func (v *Reviewer) Discovered(resources []kind.Info) { v.table.Store(newTable(v.handlers, resources)) }

// Load returns the current load.
func (v *Reviewer) Load() Load {
	load := Load{InFlight: int(v.busy.Load())}
	v.inbox.load(&load)
	for _, b := range []*budget{&v.lanes.ordinary, &v.lanes.costly, &v.lanes.slots} {
		b.load(&load)
	}
	return load
}

// Leave makes clients open new connections: each connection is closed after the reviews
// that are in progress on it. Otherwise an API server would keep its connection to a
// replica that stops, and lose the next review.
func (v *Reviewer) Leave() { v.leaving.Store(true) }

// Exempt makes the reviewer allow the operator's own writes without calling handlers.
func (v *Reviewer) Exempt(own Own) { v.own.Store(&own) }

// Own returns the argument of the last call of [Reviewer.Exempt].
func (v *Reviewer) Own() Own {
	if own := v.own.Load(); own != nil {
		return *own
	}
	return Own{}
}

// httpError refuses a request with an HTTP status code instead of a review response.
type httpError struct {
	code int
	err  error
}

func (e *httpError) Error() string { return e.err.Error() }
func (e *httpError) Unwrap() error { return e.err }

// refuse returns an [httpError].
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
	letter := v.inbox.open(r, cancel, http.NewResponseController(w), v.ReadTimeout)
	if letter == nil {
		panic(http.ErrAbortHandler) // closes the stream or the connection, even if the client does not read
	}
	gone := false
	defer func() {
		if !gone { // otherwise the handler has the room of the letter
			v.inbox.close(letter)
		}
	}()
	var out reply
	err := refuse(http.StatusServiceUnavailable, "%w", errNoRoom)
	if !letter.refused {
		out, err = v.serve(ctx, w, r, letter, table, hint)
	}
	gone = errors.Is(err, errGone)
	if gone {
		o.Code = CodeGone
	} else if refusal, ok := errors.AsType[*httpError](err); ok {
		o.Code = refusal.code
		level := slog.LevelWarn
		if r.Method != http.MethodPost { // such as a probe
			level = slog.LevelDebug
		}
		v.complain(ctx, level, hint, refusal)
		v.inbox.refuse(letter)
		http.Error(w, loglimit.Cut(err.Error()), o.Code)
	} else {
		o.Code, o.Allowed = out.code, out.allowed
		w.Header().Set("Content-Type", "application/json")
		letter.send(w, out.raw)
	}
	if v.Observe != nil {
		o.Duration = time.Since(began)
		v.Observe(o)
	}
}

// complain logs a refusal. Any client can cause refusals, so the lines of each code are
// rate-limited.
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
	v.Log.Log(ctx, level, "Refused an admission review.", attrs...)
}

// serve answers one request. Errors are of type [httpError]. hint is the path of the
// URL: the id of a webhook, or empty.
func (v *Reviewer) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, letter *letter, table *table, hint string) (reply, error) {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return reply{}, refuse(http.StatusMethodNotAllowed, "reviews must be sent by POST")
	case table == nil:
		return reply{}, refuse(http.StatusServiceUnavailable, "the resources of the cluster are not known yet")
	case hint != "" && table.ids[hint] == "":
		return reply{}, refuse(http.StatusNotFound, "there is no webhook %q", loglimit.Cut(hint))
	}
	var held held
	defer held.release()
	held.add(func() { v.inbox.release(letter) })
	body, err := v.receive(ctx, letter, r)
	if err != nil {
		if in := decodeHead(body); in != nil && in.Request.proposes() {
			return v.refuseObject(ctx, letter, hint, in, err)
		}
		return reply{}, err
	}
	leave, err := v.lanes.enter(ctx, letter.sender(), cost(body)+table.memory(table.ids[hint], body))
	if err != nil {
		return reply{}, refuse(http.StatusServiceUnavailable, "%w", err)
	}
	v.busy.Add(1)
	held.add(func() { leave(); v.busy.Add(-1) })
	in, err := decode(body)
	if err != nil {
		err = refuse(http.StatusBadRequest, "%w", err)
		if in := decodeHead(body); in != nil && in.Request.proposes() && isMalformed(err) {
			return v.refuseObject(ctx, letter, hint, in, err)
		}
		return reply{}, err
	}
	gvr := schema.GroupVersionResource(in.Request.Resource)
	reviewed := table.resources[gvr]
	if reviewed == nil {
		return reply{}, refuse(http.StatusNotFound, "there are no handlers for reviews of %s", gvr)
	}
	req, err := v.request(in.Request, reviewed, r)
	if err != nil {
		if in.Request.releases() {
			return v.reply(ctx, letter, in.answer(verdict{}))
		}
		if _, refused := errors.AsType[*httpError](err); refused && in.Request.proposes() {
			return v.refuseObject(ctx, letter, hint, in, err)
		}
		return reply{}, err
	}
	if own := v.own.Load(); own != nil && own.exempts(req.Review) {
		return v.reply(ctx, letter, in.answer(verdict{}))
	}
	req.Review.Context = func() context.Context { return ctx }
	result, ok := v.attend(r.Context(), &held, func() verdict { return v.judge(ctx, reviewed, table.ids[hint], req) })
	if !ok {
		v.inbox.abandon(letter)
		return reply{}, errGone
	}
	return v.reply(ctx, letter, in.answer(result))
}

// refuseObject denies a request because its object cannot be reviewed. err is an
// [httpError].
func (v *Reviewer) refuseObject(ctx context.Context, l *letter, hint string, in *incoming, err error) (reply, error) {
	refusal, _ := errors.AsType[*httpError](err)
	v.complain(ctx, slog.LevelWarn, hint, refusal)
	return v.reply(ctx, l, in.answer(verdict{denial: &denial{message: "the object cannot be reviewed: " + loglimit.Cut(err.Error()), code: refusal.code}}))
}

// reply is an encoded response.
type reply struct {
	raw     []byte
	allowed bool
	code    int
}

// reply waits for room for a response and encodes it.
func (v *Reviewer) reply(ctx context.Context, l *letter, answer outgoing) (reply, error) {
	if err := v.inbox.reply(ctx, l, answer.size()); err != nil {
		return reply{}, refuse(http.StatusServiceUnavailable, "%w", err)
	}
	raw, err := jsonvalue.Marshal(answer)
	if err != nil {
		return reply{}, refuse(http.StatusInternalServerError, "encode the response: %w", err)
	}
	out := reply{raw: append(raw, '\n'), allowed: answer.Response.Allowed, code: http.StatusOK}
	if s := answer.Response.Status; s != nil {
		out.code = s.Code
	}
	return out, nil
}

// receive reads the body of a review. It occupies no capacity for handling before it is
// complete. If the body is too long, receive returns its beginning with the error.
func (v *Reviewer) receive(ctx context.Context, l *letter, r *http.Request) ([]byte, error) {
	body, err := v.inbox.receive(ctx, l, r, v.MaxBody)
	if err == nil {
		return body, nil
	}
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return body, refuse(http.StatusRequestEntityTooLarge, "the review is longer than %d bytes", v.MaxBody)
	}
	switch {
	case errors.Is(err, errNoRoom):
		return nil, refuse(http.StatusServiceUnavailable, "%w", err)
	case errors.Is(err, errSlow):
		return nil, refuse(http.StatusRequestTimeout, "receive the review: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the body is truncated")
	}
	return nil, refuse(http.StatusBadRequest, "receive the review: %w", err)
}

// request returns the request for the handlers.
func (v *Reviewer) request(in *request, of *reviewed, r *http.Request) (*handler.Request, error) {
	review, err := in.review(of.managed)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%w", err)
	}
	review.Header, review.Peer = r.Header, peerOf(r)
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		review.Client = r.TLS.PeerCertificates[0]
	}
	body := review.New
	if body == nil {
		body = review.Old
	}
	// The API server calls mutating webhooks before it validates an update. So the uid of
	// the proposed object may be that of another object.
	uid := body.UID
	if review.Old != nil {
		uid = review.Old.UID
	}
	req := &handler.Request{
		Body: body, Resource: of.info, Review: review, Started: time.Now(), Key: func() string { return review.UID },
		Patch: &patch.Patch{}, API: v.API,
		Post: func(string, string, string) {}, // the object may never be created
		Log:  v.logger(in, of.info, uid),
	}
	if v.Memos != nil && review.Operation != "CREATE" {
		req.Memos = v.Memos(of.info, uid)
	}
	if req.Memos == nil {
		req.Memos = &handler.Memos{}
	}
	return req, nil
}

// logger returns a logger that adds the object to all lines. Any client can send
// reviews, with names of any length.
func (v *Reviewer) logger(in *request, info kind.Info, uid string) *slog.Logger {
	return v.Log.With(slog.Group("object",
		slog.String("apiVersion", info.APIVersion()),
		slog.String("kind", info.Kind),
		slog.String("name", loglimit.CutName(in.Name)),
		slog.String("namespace", loglimit.CutName(in.Namespace)),
		slog.String("uid", loglimit.CutName(uid)),
	))
}

// judge calls all matching handlers, one after the other.
func (v *Reviewer) judge(ctx context.Context, r *reviewed, id string, req *handler.Request) (result verdict) {
	defer func() {
		if p := recover(); p != nil { // in a filter or an edit; Attempt recovers panics of handlers
			v.limited(id, req.Log).Error("Denied an admission review because of a panic.", "webhook", id, "panic", p, "stack", string(execute.PanicStack()))
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
		v.limited(id, req.Log).Error("Denied an admission review because its changes cannot be encoded as JSON.", "webhook", id, "error", err)
		result.add(denied(err))
	}
	result.patch = raw
	return result
}

// ask calls one handler.
func (v *Reviewer) ask(ctx context.Context, h *handler.Handler, req *handler.Request, changes *patch.Patch) *denial {
	call := *req
	call.Handler, call.Patch = h, &patch.Patch{}
	limited := v.limited(h.ID, req.Log)
	outcome := execute.Attempt{
		Title: "Webhook", ID: h.ID, DefaultMode: handler.Fail, Started: req.Started, Log: limited, Own: &call.Log,
		Call: func(ctx context.Context) (any, error) {
			defer func() { // the limit applies to the line about the outcome, even after a panic
				if call.Log == req.Log {
					call.Log = limited
				} else {
					call.Log = v.limited(h.ID, call.Log)
				}
			}()
			err := h.Call(ctx, &call)
			if denied, ok := err.(*handler.DeniedError); ok {
				return nil, &handler.PermanentError{Err: denied} // log it like a permanent error
			}
			return nil, err
		},
	}.Make(ctx)
	err := outcome.Err
	if permanent, ok := err.(*handler.PermanentError); ok {
		if denied, ok := permanent.Err.(*handler.DeniedError); ok {
			err = denied
		}
	}
	switch {
	case err != nil:
		return denied(err)
	case h.Admission.Mutating:
		changes.Absorb(call.Patch)
	case !call.Patch.Empty():
		v.limited(h.ID, req.Log).Error("Webhook '"+h.ID+"' only validates, so its changes to the object are dropped.", "handler", h.ID)
	}
	return nil
}

// timeLeft returns the time limit of a review: a little less than the timeout of the API
// server, because the response must arrive in time.
func timeLeft(most time.Duration, r *http.Request) time.Duration {
	if asked, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && asked > 0 {
		return min(most, asked-min(asked/10, time.Second))
	}
	return most
}
