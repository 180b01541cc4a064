package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// usualInactivity is the limit for failures if there is no inactivity timeout.
	usualInactivity = 70 * time.Second

	// leastStuck is the minimum time without progress after which the loop of a stream
	// counts as stuck. One request may take 30 s, and a pause 5 s.
	leastStuck = 2 * time.Minute

	// leastAnswering is the minimum age of the last response at which the API server
	// counts as responding. It is less than leastStuck, which ensures that a stuck loop
	// was stuck before the last response.
	leastAnswering = time.Minute

	// An alarm rings within milliseconds. lateAlarm causes a warning; stuckAlarm means
	// that the clock has stopped.
	lateAlarm  = 10 * time.Second
	stuckAlarm = 2 * time.Minute

	// A review is handled at once if there is capacity. lateReview causes a warning.
	// After stalledReview, other replicas should get the reviews. Clients that send
	// reviews slowly cannot make others wait that long.
	lateReview    = time.Second
	stalledReview = 5 * time.Second
)

// Judge reports the health of an operator. It is pure.
//
// The operator is not live only if a restart may help: some part makes no progress
// although the API server responds and accepts the credentials. An outage of the API,
// however long, is no reason to restart.
//
// The operator is not ready before it has started and answers admission reviews, while its
// credentials are rejected, while admission reviews wait for capacity for seconds, and while a resource is not
// watched at all: all its streams have been silent or failing for longer than the
// inactivity timeout. Resources that cannot be served are warnings, unless Strict. An
// operator that is idle on purpose is ready.
func Judge(now time.Time, s Snapshot) Report {
	j := judge{s, now}
	return report(s.Started, slices.Concat(
		j.start(), j.idleness(), j.credentials(), j.api(), j.alarms(), j.streams(), j.reviews(), j.problems(), j.neighbors()))
}

type judge struct {
	Snapshot
	now time.Time
}

func (j judge) start() []Finding {
	switch {
	case j.Started:
		return one("start", Fine, "The operator has started.")
	case j.Starting == "":
		return one("start", Unready, "The operator is still starting.")
	}
	return one("start", Unready, "The operator is still starting: %s.", oneLine(j.Starting))
}

func (j judge) idleness() []Finding {
	if j.Idle == "" {
		return nil
	}
	return one("idleness", Note, "The operator is idle on purpose: %s.", oneLine(j.Idle))
}

func (j judge) credentials() []Finding {
	if j.Refused.IsZero() {
		return one("credentials", Fine, "The credentials are not rejected.")
	}
	why := "no reason given"
	if j.RefusedWhy != nil {
		why = oneLine(j.RefusedWhy.Error())
	}
	return one("credentials", Unready, "The API server has rejected the credentials for %s, and all requests wait for others: %s.",
		words(j.age(j.Refused)), why)
}

func (j judge) api() []Finding {
	switch {
	case j.answers():
		return one("api", Fine, "The API server responded %s ago.", words(j.age(j.Answered)))
	case !j.Answered.IsZero():
		return one("api", Warning, "The API server has not responded for %s.", words(j.age(j.Answered)))
	case j.Started:
		return one("api", Warning, "The API server has never responded.")
	}
	return one("api", Fine, "The API server has not responded yet.")
}

func (j judge) alarms() []Finding {
	const late = "Retries and timers are overdue by %s: the alarm clock "
	switch {
	case j.Overdue >= stuckAlarm && j.curable():
		return one("alarms", Dead, late+"is stuck.", words(j.Overdue))
	case j.Overdue >= lateAlarm:
		return one("alarms", Warning, late+"is late.", words(j.Overdue))
	}
	return one("alarms", Fine, "No retry or timer is overdue.")
}

func (j judge) reviews() []Finding {
	if j.NoReviews && j.Started {
		return one("reviews", Unready, "Admission reviews are not answered yet: the webhook server starts when the indices are filled.")
	}
	if j.Reviews == 0 {
		return nil
	}
	level := Fine
	switch {
	case !j.ReviewsBlocked.IsZero() && j.age(j.ReviewsBlocked) >= stalledReview:
		level = Unready
	case j.age(j.ReviewsSince) >= lateReview:
		level = Warning
	}
	return one("reviews", level, "Admission reviews wait for capacity: %d of them, the first for %s.", j.Reviews, words(j.age(j.ReviewsSince)))
}

func (j judge) problems() []Finding {
	var found []Finding
	for _, p := range j.Problems {
		found = append(found, Finding{"declarations", j.ifStrict(), oneLine(p)})
	}
	return found
}

func (j judge) neighbors() []Finding {
	if j.Neighbor == "" {
		return nil
	}
	return []Finding{{"neighbors", Warning, oneLine(j.Neighbor)}}
}

func (j judge) age(t time.Time) time.Duration { return j.now.Sub(t) }

// answers reports whether the API server has responded recently.
func (j judge) answers() bool {
	return !j.Answered.IsZero() && j.age(j.Answered) <= max(j.patience(), leastAnswering)
}

// curable reports whether a standstill can be blamed on this process. Without responses
// it is the API server's fault; without credentials all requests wait for them.
func (j judge) curable() bool { return j.answers() && j.Refused.IsZero() }

// patience returns the time after which silence and failures count: the inactivity
// timeout, plus some time to replace the watch.
func (j judge) patience() time.Duration {
	base := j.Inactivity
	if base == 0 {
		base = usualInactivity
	}
	return base + base/4
}

func (j judge) ifStrict() Level {
	if j.Strict {
		return Unready
	}
	return Warning
}

func one(about string, l Level, text string, args ...any) []Finding {
	return []Finding{{about, l, fmt.Sprintf(text, args...)}}
}

// words formats a duration with a suitable precision.
func words(d time.Duration) string {
	if d < time.Second {
		return "less than a second"
	}
	unit := time.Second
	if d >= time.Hour {
		unit = time.Minute
	}
	text := d.Truncate(unit).String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// oneLine makes arbitrary text fit into one line.
func oneLine(text string) string {
	const most = 500
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
