package report

// Check is a budget and its outcome.
type Check struct {
	Name  string  `json:"name"`
	Is    float64 `json:"is"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the limit is a lower one
	Met   bool    `json:"met"`
}

func (c Check) limit() string {
	if c.Least {
		return "≥ " + number(c.Limit)
	}
	return "≤ " + number(c.Limit)
}

// AtMost checks an upper limit.
func (r *Results) AtMost(name string, is, limit float64) {
	r.Checks = append(r.Checks, Check{Name: name, Is: is, Limit: limit, Met: is <= limit})
}

// AtLeast checks a lower limit.
func (r *Results) AtLeast(name string, is, limit float64) {
	r.Checks = append(r.Checks, Check{Name: name, Is: is, Limit: limit, Least: true, Met: is >= limit})
}
