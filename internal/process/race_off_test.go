//go:build !race

package process

// poolNoise is the number of allocations by which two measurements of the same code may
// differ.
const poolNoise = 0.5
