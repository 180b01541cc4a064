package report

import (
	"fmt"
	"strings"
)

// Table returns the results as Markdown.
func (r *Results) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of %s, %s\n\n", r.Mode, r.Date)
	fmt.Fprintf(&b, "%s, %d cores; %s, Kubernetes %s, controller-runtime %s; commit %s.\n", r.Machine, r.Cores, r.Go, r.Kubernetes, r.Runtime, r.Commit)
	fmt.Fprintf(&b, "Before the start the machine was %.0f %% busy with other things; %.1f %% of the CPU was stolen during the run.\n", 100*r.Busy, 100*r.Stolen)
	if r.Rounds > 1 {
		fmt.Fprintf(&b, "All values are medians of %d rounds, in which the programs took turns.\n", r.Rounds)
	}
	for _, s := range r.Sizes {
		fmt.Fprintf(&b, "Objects with %d entries have %.1f KB when they are new and %.1f KB when they are handled (%s).\n", s.Entries, float64(s.Fresh)/1024, float64(s.Handled)/1024, s.Program)
	}
	if len(r.Checks) > 0 {
		b.WriteString("\n## Budgets\n\n| budget | measured | limit | met |\n|---|---|---|---|\n")
		for _, c := range r.Checks {
			met := "yes"
			if !c.Met {
				met = "**no**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Name, number(c.Is), c.limit(), met)
		}
	}
	var last, columns string
	for _, row := range r.Rows {
		var names []string
		for _, v := range row.Values {
			names = append(names, v.Name+", "+v.Unit)
		}
		if now := strings.Join(names, " | "); row.ID != last || now != columns {
			if row.ID != last {
				fmt.Fprintf(&b, "\n## %s %s\n", row.ID, Titles[row.ID])
			}
			last, columns = row.ID, now
			fmt.Fprintf(&b, "\n| program | objects | %s |\n|---|---|%s\n", now, strings.Repeat("---|", len(names)))
		}
		program := row.Program
		if row.Note != "" {
			program += " (" + row.Note + ")"
		}
		fmt.Fprintf(&b, "| %s | %d |", program, row.Objects)
		for _, v := range row.Values {
			fmt.Fprintf(&b, " %s |", number(v.Is))
		}
		b.WriteString("\n")
	}
	b.WriteString(r.onPaper())
	if _, measured := r.largest("B1", kopf); !measured {
		fmt.Fprintf(&b, "\n## Measured apart\n\n| program | objects | rate, objects/s | CPU per object, ms | writes per object, requests |\n|---|---|---|---|---|\n| Kopf 1.44.6 | 3000 | %s | %s | 2 |\n",
			number(Apart["rate"]), number(Apart["CPU per object"]))
	}
	return b.String()
}

// Titles returns the titles of the measurements.
var Titles = map[string]string{
	"M":   "memory with and without an index",
	"B1":  "new objects, one create handler with a result",
	"B2":  "updates of all objects, one update handler",
	"B3":  "cold start with handled objects",
	"B4":  "memory against the number and the size of objects",
	"B5":  "idle",
	"B6":  "latency from an update to its handler",
	"B7":  "latency of new objects while all are being resumed",
	"B8":  "delete storm with delete handlers",
	"B9":  "relisting after 410",
	"B10": "timers and daemons",
	"B11": "many namespaces",
	"B12": "reviews of updates, one validating handler",
	"B13": "new objects with three children",
	"B14": "restart of an operator whose objects have three children",
}

func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
