package rbac

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// Config configures a [Reviewer].
type Config struct {
	API API
	Log *slog.Logger

	// Jitter shortens the delays between rounds. nil means exact delays.
	Jitter jitter.Source

	// Needs returns the current needs. It is called in every round.
	Needs func() []Need

	// Namespaces returns the served namespaces. An empty list, or an empty name in it,
	// means the whole cluster. It is called in every round.
	Namespaces func() []string

	// Granted is called when a missing permission was granted, which lets rejected
	// requests be retried at once. May be nil.
	Granted func()
}

// Pauses between rounds.
const (
	firstPause = time.Second // doubled after each round while permissions are missing
	mostPause  = 30 * time.Second

	// calm is the minimum interval of requested rounds: rejected requests come in
	// bursts. It doubles after each round without a change, because some requests are
	// rejected repeatedly.
	calm     = 10 * time.Second
	mostCalm = 5 * time.Minute
)

// Reviewer tracks missing permissions.
type Reviewer struct {
	config Config
	again  chan struct{}

	allowed map[question]bool
	missing map[question]bool // already logged
	me      Subject
	partial bool // some questions were not asked, and that was logged
}

// NewReviewer returns a reviewer. Run starts it.
func NewReviewer(c Config) *Reviewer {
	return &Reviewer{config: c, again: make(chan struct{}, 1)}
}

// Recheck requests a review of all permissions, because needs have changed or a request
// was rejected. It does not block and is safe for concurrent use. It may be called at
// any rate: rounds are at least 10 s apart, and further if they find no change.
func (r *Reviewer) Recheck() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// Refused calls [Reviewer.Recheck] if err is a Forbidden error.
func (r *Reviewer) Refused(err error) {
	if apierrors.IsForbidden(err) {
		r.Recheck()
	}
}

// Run reviews until ctx ends: once at the start, again while permissions are missing,
// and on request.
func (r *Reviewer) Run(ctx context.Context) {
	retries, calms, rest := 0, 1, calm
	var reviewed time.Time // time of the last full review
	for everything := true; ctx.Err() == nil; {
		soon := time.Since(reviewed) <= 2*rest
		if everything {
			r.allowed, reviewed = map[question]bool{}, time.Now()
		}
		news, unsettled := r.round(ctx)
		switch {
		case news:
			retries, calms = 0, 1
		case everything && soon:
			calms++
		case everything:
			calms = 1
		}
		rest = backoff.Backoff{First: calm, Most: mostCalm}.After(calms)
		var timer <-chan time.Time
		if unsettled {
			retries++
			pause := backoff.Backoff{First: firstPause, Most: mostPause}.After(retries)
			timer = time.After(r.config.Jitter.Shorten(pause, jitter.Slight))
		}
		everything = r.wait(ctx, timer, time.After(time.Until(reviewed.Add(rest))))
	}
}

// wait returns when the next round is due, and whether it is a full review. A full
// review starts only after rest.
func (r *Reviewer) wait(ctx context.Context, timer, rest <-chan time.Time) (everything bool) {
	var again chan struct{}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer:
			return false
		case <-rest:
			again = r.again
		case <-again:
			return true
		}
	}
}

// round reviews everything that is not known to be allowed. It reports whether new
// permissions are missing, and whether another round is needed.
func (r *Reviewer) round(ctx context.Context) (news, unsettled bool) {
	maps.DeleteFunc(r.allowed, func(_ question, allowed bool) bool { return !allowed })
	v := &review{needs: r.config.Needs(), namespaces: served(r.config.Namespaces()), allowed: r.allowed}
	unasked, err := ask(ctx, r.config.API, v.wide(), wideQuestions, r.allowed)
	if err == nil {
		var more int
		more, err = ask(ctx, r.config.API, v.narrow(), narrowQuestions, r.allowed)
		unasked += more
	}
	if err != nil {
		if ctx.Err() == nil {
			r.config.Log.Debug("Cannot review the operator's permissions; missing ones appear as errors of requests.", "error", err)
		}
		s, answered := kube.Refused(err)
		return false, !answered || s.Code >= 500 // a server that rejects reviews will do so again
	}
	if unasked > 0 && !r.partial {
		r.config.Log.Info("Too many permissions to review; some are skipped.", "unasked", unasked)
	}
	r.partial = unasked > 0
	before := r.missing
	granted, _ := v.collect(func(q question) bool { return before[q] && v.has(q) })
	fresh, _ := v.collect(func(q question) bool { return !before[q] && v.lacks(q) })
	missing, each := v.collect(v.lacks)
	r.missing = each
	r.tellGranted(granted)
	r.tellMissing(ctx, fresh, missing)
	return len(fresh) > 0, len(missing) > 0
}

// served returns the namespaces to review. nil means the whole cluster.
func served(names []string) []string {
	if slices.Contains(names, "") {
		return nil
	}
	return slices.Sorted(slices.Values(names))
}

// tellGranted logs permissions that were missing and are granted now, and calls Granted.
func (r *Reviewer) tellGranted(granted []Missing) {
	for _, m := range granted {
		r.config.Log.Info("A missing permission was granted.", m.attrs()...)
	}
	if len(granted) > 0 && r.config.Granted != nil {
		r.config.Granted()
	}
}

// tellMissing logs newly missing permissions, and the manifests that grant all missing
// ones.
func (r *Reviewer) tellMissing(ctx context.Context, fresh, missing []Missing) {
	for _, m := range fresh {
		r.config.Log.Warn("A permission is missing.", append(m.attrs(), "by", m.By, "without", m.Without)...)
	}
	if len(fresh) == 0 {
		return
	}
	if r.me == (Subject{}) {
		name, err := WhoAmI(ctx, r.config.API)
		if err != nil {
			r.config.Log.Debug("Cannot get the operator's user name.", "error", err)
		}
		r.me = SubjectOf(name)
	}
	// Text formats print a manifest below the line, ready to be pasted.
	r.config.Log.Warn("To grant all missing permissions, apply this manifest; no restart is needed:", "manifest", Rules(missing, r.me))
}

func (m Missing) attrs() []any {
	resource := m.Resource
	if m.Group != "" {
		resource += "." + m.Group
	}
	attrs := []any{"verbs", m.Verbs, "resource", resource}
	if m.Name != "" {
		attrs = append(attrs, "name", m.Name)
	}
	if len(m.Namespaces) > 0 {
		attrs = append(attrs, "namespaces", m.Namespaces)
	}
	return attrs
}
