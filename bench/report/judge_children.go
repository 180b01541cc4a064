package report

import "fmt"

// judgeChildren checks the budgets of objects with children.
func (r *Results) judgeChildren(n int) {
	if own, found := r.Find("B13", gopf, n, "", "CPU per object"); found {
		if other, found := r.Find("B13", typed, n, "", "CPU per object"); found {
			r.AtMost(fmt.Sprintf("B13, %d objects: CPU per object, ms, against %s", n, typed), own, .8*other)
		}
	}
	title := func(what string) string { return fmt.Sprintf("B14, %d objects: %s", n, what) }
	cpu, found := r.Find("B14", gopf, n, "", "CPU per object")
	if !found {
		return
	}
	r.AtMost(title("CPU per object with its children, µs"), cpu, 400)
	writes, _ := r.Find("B14", gopf, n, "", "writes")
	r.AtMost(title("writes"), writes, 0)
	settled, _ := r.Find("B14", gopf, n, "", "settled")
	size, _ := r.Find("B14", gopf, n, "", "JSON of the children")
	r.AtMost(title("settled, MB"), settled, .2*size+45)
	peak, _ := r.Find("B14", gopf, n, "", "peak")
	r.AtMost(title("peak, MB"), peak, 1.2*settled)
}
