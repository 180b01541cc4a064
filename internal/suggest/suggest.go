// Package suggest finds the known word that a misspelled one was probably meant to be.
package suggest

import "strings"

// Closest returns the known word that is closest to the typed one, or an empty string
// if none is close. Case is ignored. Up to a third of the letters may differ, at most
// three. A word that is a prefix of the other one also counts, if it has at least three
// letters.
func Closest(typed string, known []string) string {
	best, least := "", min(3, max(1, len(typed)/3))+1
	for _, word := range known {
		a, b := strings.ToLower(typed), strings.ToLower(word)
		d := Distance(a, b)
		if min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = word, d
		}
	}
	return best
}

// Distance returns the number of letters to insert, remove, replace or swap with their
// neighbor to turn a into b.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	before, above, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(from); i++ {
		row[0] = i
		for j := 1; j <= len(to); j++ {
			cost := 1
			if from[i-1] == to[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(to)]
}
