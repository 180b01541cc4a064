//go:build race

package process

// poolNoise is the number of allocations by which two measurements of the same code may
// differ: the race detector drops pooled objects at random.
const poolNoise = 4
