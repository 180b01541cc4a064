package report

import "slices"

// Median replaces the rows of several rounds by one with the medians of their values.
func (r *Results) Median(rounds int) {
	type key struct {
		id, program, note string
		objects           int
	}
	seen := map[key][]Row{}
	var order []key
	for _, row := range r.Rows {
		k := key{row.ID, row.Program, row.Note, row.Objects}
		if seen[k] == nil {
			order = append(order, k)
		}
		seen[k] = append(seen[k], row)
	}
	r.Rows, r.Rounds = nil, rounds
	for _, k := range order {
		same := seen[k]
		merged := same[0]
		merged.Values = slices.Clone(merged.Values)
		for i, v := range merged.Values {
			var all []float64
			for _, row := range same {
				if i < len(row.Values) && row.Values[i].Name == v.Name {
					all = append(all, row.Values[i].Is)
				}
			}
			merged.Values[i].Is = median(all)
		}
		r.Add(merged)
	}
}

// median returns the middle of at least one value, or the mean of the two in the middle.
func median(all []float64) float64 {
	slices.Sort(all)
	middle := len(all) / 2
	if len(all)%2 == 0 {
		return (all[middle-1] + all[middle]) / 2
	}
	return all[middle]
}
