package report

import "fmt"

// judgeStatus checks the budgets of operators that keep their state in the status.
func (r *Results) judgeStatus(n int) {
	r.judgeStatusStorms(n)
	check := func(id, what string) string {
		return fmt.Sprintf("%s, state in the status, %d objects: %s", id, n, what)
	}
	if calls, found := r.Find("B3", status, n, "", "handler calls"); found {
		r.AtMost(check("B3", "handler calls"), calls, 0)
		writes, _ := r.Find("B3", status, n, "", "writes")
		r.AtMost(check("B3", "writes"), writes, 0)
		cpu, _ := r.Find("B3", status, n, "", "CPU per object")
		r.AtMost(check("B3", "CPU per object, µs"), cpu, 55)
	}
	p99, found := r.Find("B6", status, n, "", "p99")
	if !found {
		return
	}
	if floor, found := r.Find("B6", bare, n, "watch during "+status, "p99"); found {
		r.AtMost(check("B6", "p99, ms, against a bare watch"), p99, floor+2)
	}
	if resuming, found := r.Find("B7", status, n, "", "p99"); found {
		r.AtMost(check("B7", "p99, ms, against B6"), resuming, 5*p99)
	}
}

// judgeStatusStorms compares the storms with those of controller-runtime, which also makes
// one write per object.
func (r *Results) judgeStatusStorms(n int) {
	for _, c := range []struct {
		id    string
		share float64
	}{{"B1", .65}, {"B2", .75}} {
		check := func(what string) string { return fmt.Sprintf("%s, state in the status, %d objects: %s", c.id, n, what) }
		cpu, found := r.Find(c.id, status, n, "", "CPU per object")
		if !found {
			continue
		}
		writes, _ := r.Find(c.id, status, n, "", "writes per object")
		r.AtMost(check("writes per object"), writes, 1)
		if other, found := r.Find(c.id, typed, n, "", "CPU per object"); found {
			r.AtMost(check("CPU per object, ms, against "+typed), cpu, c.share*other)
		}
		if other, found := r.Find(c.id, typed, n, "", "rate"); found && c.id == "B1" {
			rate, _ := r.Find(c.id, status, n, "", "rate")
			r.AtLeast(check("objects/s against "+typed), rate, .95*other)
		}
	}
}
