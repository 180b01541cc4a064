package access

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// Config says whose permissions to review.
type Config struct {
	API API
	Log *slog.Logger

	// Jitter shortens the delays between rounds. nil means exact delays.
	Jitter jitter.Source

	// Needs are what must be allowed now. Asked in every round.
	Needs func() []Need

	// Namespaces are those served now; none, or "", for the whole cluster. Asked
	// in every round.
	Namespaces func() []string

	// Granted, if set, is called when something was granted that had been
	// missing, so that whoever was refused can try again at once.
	Granted func()
}

// Pauses between rounds.
const (
	firstPause = time.Second // doubled with each, while something is missing
	mostPause  = 30 * time.Second

	// calm is between rounds that were asked for: requests that are refused come
	// in crowds. It is doubled with each that brought nothing new, since some are
	// refused again and again.
	calm     = 10 * time.Second
	mostCalm = 5 * time.Minute
)

// Reviewer keeps track of what is not allowed.
type Reviewer struct {
	config Config
	again  chan struct{}

	allowed map[question]bool
	missing map[question]bool // and told
	me      Subject
	partial bool // not everything was asked, and told
}

// NewReviewer makes a reviewer; Run starts it.
func NewReviewer(c Config) *Reviewer {
	return &Reviewer{config: c, again: make(chan struct{}, 1)}
}

// Recheck has everything reviewed anew, because needs have changed or
// something was refused. It does not wait, may be called from anywhere and as
// often as one likes: rounds have at least 10 s between them, and more if they bring
// nothing new.
func (r *Reviewer) Recheck() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// Refused is [Reviewer.Recheck] if the error says that something is forbidden.
func (r *Reviewer) Refused(err error) {
	if apierrors.IsForbidden(err) {
		r.Recheck()
	}
}

// Run reviews until the context is done: once, again while something is
// missing, and when it is asked to.
func (r *Reviewer) Run(ctx context.Context) {
	pause, rest := firstPause, calm
	var reviewed time.Time // when everything was
	for everything := true; ctx.Err() == nil; {
		soon := time.Since(reviewed) <= 2*rest
		if everything {
			r.allowed, reviewed = map[question]bool{}, time.Now()
		}
		news, unsettled := r.round(ctx)
		switch {
		case news:
			pause, rest = firstPause, calm
		case everything && soon:
			rest = min(2*rest, mostCalm)
		case everything:
			rest = calm
		}
		var timer <-chan time.Time
		if unsettled {
			timer = time.After(r.config.Jitter.Shorten(pause, jitter.Slight))
			pause = min(2*pause, mostPause)
		}
		everything = r.wait(ctx, timer, time.After(time.Until(reviewed.Add(rest))))
	}
}

// wait returns when there is to be another round, and whether it is about
// everything, which it may be only after the rest.
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

// round asks what is not known to be allowed. It tells whether something new
// is missing, and whether to ask again.
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
			r.config.Log.Debug("What the operator is allowed to do cannot be reviewed; it shows when it is done.", "error", err)
		}
		s, answered := kube.Refused(err)
		return false, !answered || s.Code >= 500 // who refuses reviews will do it again
	}
	if unasked > 0 && !r.partial {
		r.config.Log.Info("There is too much to ask about permissions: some are not reviewed.", "unasked", unasked)
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

// served are the namespaces to ask about; none for the whole cluster.
func served(names []string) []string {
	if slices.Contains(names, "") {
		return nil
	}
	return slices.Sorted(slices.Values(names))
}

// tellGranted reports what was missing and is allowed now.
func (r *Reviewer) tellGranted(granted []Missing) {
	for _, m := range granted {
		r.config.Log.Info("A permission was granted that had been missing.", m.attrs()...)
	}
	if len(granted) > 0 && r.config.Granted != nil {
		r.config.Granted()
	}
}

// tellMissing reports what was not missing before, and how to grant all that
// is missing.
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
			r.config.Log.Debug("Who the operator is to the cluster is not known.", "error", err)
		}
		r.me = SubjectOf(name)
	}
	// Text formats print a manifest below the line, so that it can be pasted.
	r.config.Log.Warn("To grant all that is missing, apply this; the operator will notice:", "manifest", Rules(missing, r.me))
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
