//go:build !race

package engine_test

const many = 10_000
