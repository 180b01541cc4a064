package report

// Judge compares what was measured with the budgets.
func (r *Results) Judge() {}
