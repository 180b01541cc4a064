//go:build race

package engine_test

// The race detector slows everything down tenfold. The full number is tested without it.
const many = 1_000
