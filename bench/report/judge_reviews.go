package report

import "fmt"

// judgeReviews compares the webhook server with that of controller-runtime.
func (r *Results) judgeReviews(n int) {
	own, found := r.Find("B12", gopf, n, "", "CPU per review")
	other, also := r.Find("B12", typed, n, "", "CPU per review")
	if !found || !also {
		return
	}
	// Gopf compares both objects for the handler, and limits the size of reviews.
	r.AtMost(fmt.Sprintf("B12, %d reviews: CPU per review, µs, against controller-runtime", n), own, 1.1*other)
	peak, _ := r.Find("B12", gopf, n, "", "peak")
	r.AtMost(fmt.Sprintf("B12, %d reviews: peak, MB", n), peak, 60)
}
