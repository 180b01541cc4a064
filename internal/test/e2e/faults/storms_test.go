package faults_test

import (
	"testing"
	"time"

	"gopf.dev/gopf"
)

// storm makes the effect befall all that match, for a while.
func storm(match func(*exchange) bool, e effect, lasts time.Duration) fault {
	var r *rule
	return fault{
		lasts: lasts,
		begin: func(p *proxy) { r = p.strike(match, e) },
		end:   func(*proxy) { r.end() },
	}
}

// stormy is a storm for all that ends the open streams as well.
func stormy(e effect, lasts time.Duration) fault { return cutting(storm(everything, e, lasts)) }

// cutting makes a fault begin with the end of all open streams.
func cutting(f fault) fault {
	begin := f.begin
	f.begin = func(p *proxy) {
		begin(p)
		p.cutStreams("")
	}
	return f
}

func TestStorms(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, f := range map[string]fault{
		"429":                      stormy(answers(429), 2*s),
		"429 with a hint":          stormy(answers(429, "Retry-After", "1"), 2*s),
		"500":                      stormy(answers(500), 2*s),
		"503":                      stormy(answers(503), 2*s),
		"503 for requests":         storm(requests, answers(503), 2*s),
		"500 for writes":           storm(writes, answers(500), 2*s),
		"429 for writes":           storm(writes, answers(429), 2*s),
		"401":                      stormy(answers(401), 2*s),
		"401 for watches":          cutting(storm(watches, answers(401), 2*s)),
		"401 for writes":           storm(writes, answers(401), 2*s),
		"403":                      stormy(answers(403), 2*s),
		"403 for writes":           storm(writes, answers(403), 2*s),
		"404 for all":              stormy(answers(404), 2*s),
		"410 for all":              stormy(answers(410), 2*s),
		"slow answers":             storm(everything, delays(500*time.Millisecond), 2*s),
		"connections break":        stormy(drops, 2*s),
		"answers are lost":         stormy(loses, 2*s),
		"answers never come":       stormy(neverAnswers, 4*s),
		"bodies never come":        stormy(neverEnds, 4*s),
		"requests never arrive":    stormy(neverSends, 4*s),
		"garbled answers":          stormy(garbles, 2*s),
		"conflicts for all writes": storm(writes, answers(409), 2*s),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			treat(t, f, hasty)
		})
	}
}

// With the pauses as they are by default, but shortened to a tenth, all attempts
// of a request are made within 5.4 s.
func TestAStormThatIsLongerThanAllRetries(t *testing.T) {
	t.Parallel()
	f := stormy(answers(503), 12*time.Second)
	f.seen = "escalating"
	treat(t, f, hasty)
}

// A request of which the last pause is the longest must not wait for its end when
// the storm is over. The pauses are those that are the default.
func TestLongPausesEndWithTheStorm(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]func(*exchange) bool{"for all": everything, "for writes": writes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := admit(t, func(op *gopf.Operator) {
				op.Settings.Networking.ErrorDelays = []time.Duration{time.Second, time.Minute, time.Minute}
				op.Settings.Queueing.ErrorDelays = gopf.DefaultSettings().Queueing.ErrorDelays
			})
			o.live(storm(match, answers(503), 4*time.Second))
		})
	}
}
