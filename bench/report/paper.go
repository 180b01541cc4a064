package report

import "fmt"

// paper is a relist of more objects than a machine for benchmarks can hold, calculated from
// measurements of fewer objects.
type paper struct {
	objects int
	settled float64 // memory before the relist, in MB
	peak    float64 // memory during the relist, in MB; an upper bound
	seconds float64
	cpu     float64 // in seconds
}

// measured are the inputs of a calculation.
type measured struct {
	empty   float64 // settled memory without objects, in MB (B4)
	full    float64 // settled memory with the objects, in MB (B4)
	before  float64 // settled memory before the relist, in MB (B9)
	peak    float64 // peak of the relist, in MB (B9)
	seconds float64 // duration of the relist (B9)
	cpu     float64 // CPU time of the relist per object, in µs (B9)
	objects int     // of all these measurements
}

// scale calculates a relist of n objects. Memory of settled objects, time and CPU grow with
// the number of objects. Of the memory that only the relist needs, a part is constant: the
// pages and the backlog. The calculation lets all of it grow, so it is an upper bound.
func (m measured) scale(n int) paper {
	times := float64(n) / float64(m.objects)
	settled := m.empty + (m.full-m.empty)*times
	return paper{n, settled, settled + (m.peak-m.before)*times, m.seconds * times, m.cpu * float64(n) / 1e6}
}

// onPaper returns the relist of a million objects, as lines of the table. It returns nothing
// without the measurements B4 and B9 of the same number of objects.
func (r *Results) onPaper() string {
	const n, note = 1_000_000, "10 entries"
	for _, row := range r.Rows {
		if row.ID != "B9" || row.Program != gopf {
			continue
		}
		m := measured{objects: row.Objects}
		var found [6]bool
		m.empty, found[0] = r.Find("B4", gopf, 0, note, "settled")
		m.full, found[1] = r.Find("B4", gopf, row.Objects, note, "settled")
		m.before, found[2] = r.Find("B9", gopf, row.Objects, "", "settled before")
		m.peak, found[3] = r.Find("B9", gopf, row.Objects, "", "peak")
		m.seconds, found[4] = r.Find("B9", gopf, row.Objects, "", "time")
		m.cpu, found[5] = r.Find("B9", gopf, row.Objects, "", "CPU per object")
		if found != [6]bool{true, true, true, true, true, true} {
			continue
		}
		p := m.scale(n)
		return fmt.Sprintf("\n## On paper: a relist of 1,000,000 objects\n\nCalculated from B4 and B9 with %d objects.\n\n"+
			"| program | objects | settled before, MB | peak at most, MB | time, s | CPU, s |\n|---|---|---|---|---|---|\n| %s | %d | %.0f | %.0f | %.0f | %.0f |\n",
			m.objects, gopf, p.objects, p.settled, p.peak, p.seconds, p.cpu)
	}
	return ""
}
