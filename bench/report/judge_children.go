package report

import "fmt"

// judgeChildren checks the budgets of objects with children, in both places of the state.
func (r *Results) judgeChildren(n int) {
	r.judgeChildrenOf(gopf, "", n)
	r.judgeChildrenOf(status, "state in the status, ", n)
}

func (r *Results) judgeChildrenOf(program, place string, n int) {
	title := func(id, what string) string { return fmt.Sprintf("%s, %s%d objects: %s", id, place, n, what) }
	if own, found := r.Find("B13", program, n, "", "CPU per object"); found {
		if other, found := r.Find("B13", typed, n, "", "CPU per object"); found {
			r.AtMost(title("B13", "CPU per object, ms, against "+typed), own, .8*other)
		}
	}
	cpu, found := r.Find("B14", program, n, "", "CPU per object")
	if !found {
		return
	}
	r.AtMost(title("B14", "CPU per object with its children, µs"), cpu, 400)
	writes, _ := r.Find("B14", program, n, "", "writes")
	r.AtMost(title("B14", "writes"), writes, 0)
	settled, _ := r.Find("B14", program, n, "", "settled")
	size, _ := r.Find("B14", program, n, "", "JSON of the children")
	r.AtMost(title("B14", "settled, MB"), settled, .2*size+45)
	peak, _ := r.Find("B14", program, n, "", "peak")
	r.AtMost(title("B14", "peak, MB"), peak, 1.2*settled)
}
