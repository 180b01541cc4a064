package report

import (
	"cmp"
	"fmt"
	"slices"
)

// The programs that have budgets.
const (
	gopf    = "Gopf"
	status  = "Gopf, state in the status"
	typed   = "controller-runtime, typed"
	untyped = "controller-runtime, unstructured"
	kopf    = "Kopf"
	bare    = "bare client"
)

// Judge compares the results with the budgets. It ignores measurements that were not made.
func (r *Results) Judge() {
	r.Checks = nil
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(order(a.ID), order(b.ID)), cmp.Compare(a.Objects, b.Objects))
	})
	for _, n := range r.numbers() {
		r.judgeStorms(n)
		r.judgeStarts(n)
		r.judgeLatency(n)
		r.judgeOthers(n)
		r.judgeStatus(n)
		r.judgeReviews(n)
		r.judgeChildren(n)
	}
	r.judgeSlope()
	r.judgeFlatness()
	r.judgeNamespaces()
}

func (r *Results) judgeNamespaces() {
	const limited = "without permission for the cluster"
	for _, row := range r.Rows {
		if row.ID != "B11" || row.Program != gopf {
			continue
		}
		title := fmt.Sprintf("B11, %d namespaces: ", row.Objects)
		if row.Note == limited {
			settled, _ := r.Find("B11", gopf, row.Objects, limited, "settled")
			r.AtMost(title+limited+", settled, MB", settled, 50)
			continue
		}
		settled, _ := r.Find("B11", gopf, row.Objects, "", "settled")
		r.AtMost(title+"settled, MB", settled, 60)
		if floor, found := r.Find("B11", bare, row.Objects, "paged list", "ready"); found {
			ready, _ := r.Find("B11", gopf, row.Objects, "", "ready")
			r.AtMost(title+"ready, s, against the bare list", ready, 2*floor)
		}
	}
}

func (r *Results) judgeStorms(n int) {
	for _, id := range []string{"B1", "B2"} {
		title := func(what string) string { return fmt.Sprintf("%s, %d objects: %s", id, n, what) }
		own, found := r.Find(id, gopf, n, "", "CPU per object")
		if !found {
			continue
		}
		for _, other := range []struct {
			name  string
			share float64
		}{{typed, .8}, {untyped, .8}, {kopf, 1. / 7}} {
			if v, found := r.Find(id, other.name, n, "", "CPU per object"); found {
				r.AtMost(title("CPU per object, ms, against "+other.name), own, other.share*v)
			}
		}
		if floor, found := r.Find(id, bare, n, "the same writes", "rate"); found {
			rate, _ := r.Find(id, gopf, n, "", "rate")
			r.AtLeast(title("objects/s against the bare client"), rate, .8*floor)
		}
		writes, _ := r.Find(id, gopf, n, "", "writes per object")
		r.AtMost(title("writes per object"), writes, map[string]float64{"B1": 2, "B2": 1}[id])
		peak, _ := r.Find(id, gopf, n, "", "peak")
		settled, _ := r.Find(id, gopf, n, "", "settled")
		r.AtMost(title("peak, MB"), peak, 2*settled)
	}
}

func (r *Results) judgeStarts(n int) {
	title := func(what string) string { return fmt.Sprintf("B3, %d objects: %s", n, what) }
	if calls, found := r.Find("B3", gopf, n, "", "handler calls"); found {
		r.AtMost(title("handler calls"), calls, 0)
		writes, _ := r.Find("B3", gopf, n, "", "writes")
		r.AtMost(title("writes"), writes, 0)
		cpu, _ := r.Find("B3", gopf, n, "", "CPU per object")
		r.AtMost(title("CPU per object, µs"), cpu, 80)
		if list, found := r.Find("B3", bare, n, "paged list", "ready"); found {
			ready, _ := r.Find("B3", gopf, n, "", "ready")
			r.AtMost(title("ready, s, against a bare paged list"), ready, list)
		}
	}
	for _, note := range []string{"", "with an index"} {
		settled, found := r.Find("M", gopf, n, note, "settled")
		if !found {
			continue
		}
		peak, _ := r.Find("M", gopf, n, note, "peak")
		r.AtMost(fmt.Sprintf("memory, %d objects %s: settled, MB", n, note), settled, 45)
		r.AtMost(fmt.Sprintf("memory, %d objects %s: peak, MB", n, note), peak, 1.5*settled)
	}
}

func (r *Results) judgeLatency(n int) {
	p99, found := r.Find("B6", gopf, n, "", "p99")
	if !found {
		return
	}
	if floor, found := r.Find("B6", bare, n, "watch during "+gopf, "p99"); found {
		r.AtMost(fmt.Sprintf("B6, %d objects: p99, ms, against a bare watch", n), p99, floor+2)
	}
	if resuming, found := r.Find("B7", gopf, n, "", "p99"); found {
		r.AtMost(fmt.Sprintf("B7, %d objects: p99, ms, against B6", n), resuming, 5*p99)
	}
}

func (r *Results) judgeOthers(n int) {
	if cpu, found := r.Find("B5", gopf, n, "", "CPU"); found {
		const streams = 2 // of the kind, and of what kinds there are
		r.AtMost(fmt.Sprintf("B5, %d objects: CPU, %%", n), cpu, .5)
		requests, _ := r.Find("B5", gopf, n, "", "requests per minute")
		r.AtMost(fmt.Sprintf("B5, %d objects: requests per minute and stream", n), requests/streams, 2)
	}
	if peak, found := r.Find("B9", gopf, n, "", "peak"); found {
		settled, _ := r.Find("B9", gopf, n, "", "settled before")
		r.AtMost(fmt.Sprintf("B9, %d objects: peak, MB", n), peak, 1.5*settled)
	}
	if settled, found := r.Find("B10", gopf, n, "0 daemons", "settled"); found && n == 20000 {
		r.AtMost("B10, 20000 objects with a timer each: settled, MB", settled, 60)
	}
	for most, limit := range map[int]float64{20000: 45, 100000: 70} {
		if settled, found := r.Find("B4", gopf, n, "10 entries", "settled"); found && n == most {
			r.AtMost(fmt.Sprintf("B4, %d objects: settled, MB", n), settled, limit)
		}
	}
}

// judgeSlope checks the memory per additional object.
func (r *Results) judgeSlope() {
	const note = "10 entries"
	for _, c := range []struct {
		program string
		limit   float64
	}{{gopf, .3}, {status, .28}} {
		empty, found := r.Find("B4", c.program, 0, note, "settled")
		if !found {
			continue
		}
		for _, n := range []int{20000, 100000} {
			if full, found := r.Find("B4", c.program, n, note, "settled"); found {
				r.AtMost(fmt.Sprintf("B4, %s, %d objects with %s: KB per object", c.program, n, note), (full-empty)*1024/float64(n), c.limit)
			}
		}
	}
}

// order returns the order of measurements: M, then B1 to B14.
func order(id string) (n int) {
	_, _ = fmt.Sscanf(id, "B%d", &n) // else it is 0
	return n
}

// judgeFlatness checks the memory for larger objects.
func (r *Results) judgeFlatness() {
	small, found := r.Find("B4", gopf, 5000, "10 entries", "settled")
	if large, also := r.Find("B4", gopf, 5000, "95 entries", "settled"); found && also {
		r.AtMost("B4, 5000 objects: settled with objects of 10 KB, MB, against 1 KB", large, 1.05*small)
	}
	empty, found := r.Find("B4", gopf, 0, "10 entries", "settled")
	if huge, also := r.Find("B4", gopf, 500, "950 entries", "settled"); found && also {
		r.AtMost("B4, 500 objects of 100 KB: settled, MB, against none", huge, 1.1*empty)
		peak, _ := r.Find("B4", gopf, 500, "950 entries", "peak")
		r.AtMost("B4, 500 objects of 100 KB: peak, MB", peak, 2*huge)
	}
}

func (r *Results) numbers() []int {
	var found []int
	for _, row := range r.Rows {
		if !slices.Contains(found, row.Objects) {
			found = append(found, row.Objects)
		}
	}
	return found
}
