// Package suggest finds the known word that a misspelled one was probably meant to be.
package suggest

import (
	"slices"
	"strings"
)

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

// Typo reports whether the typed word is almost certainly a misspelling of the known
// one. It is stricter than [Closest], because many names differ in few letters: port and
// ports, node and mode, ipv4 and ipv6. The words may differ in case, in two swapped
// letters, in a letter that is missing or too many, or, from six letters on, in one wrong
// letter. Words below four letters, plurals and digits are no misspellings.
func Typo(typed, known string) bool {
	if typed == known {
		return false
	}
	a, b := strings.ToLower(typed), strings.ToLower(known)
	switch {
	case a == b:
		return true
	case min(len(a), len(b)) < 4, Distance(a, b) != 1, a+"s" == b, b+"s" == a, digits(a) != digits(b):
		return false
	}
	return len(a) != len(b) || len(a) >= 6 || swapped(a, b)
}

// swapped reports whether the words have the same letters. Words of distance 1 then
// differ only in their order.
func swapped(a, b string) bool {
	letters := func(s string) string {
		r := []rune(s)
		slices.Sort(r)
		return string(r)
	}
	return letters(a) == letters(b)
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}
