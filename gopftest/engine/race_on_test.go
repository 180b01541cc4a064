//go:build race

package engine_test

// The race detector makes everything ten times slower; the full number is
// counted without it.
const many = 1_000
