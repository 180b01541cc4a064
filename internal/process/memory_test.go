package process

import (
	"testing"
	"unsafe"
)

// TestAnIdleObjectTakesLittleMemory guards against new fields: each object that an
// operator serves has a [Memory]. Allocations of more than 96 bytes take 112.
func TestAnIdleObjectTakesLittleMemory(t *testing.T) {
	if size := unsafe.Sizeof(Memory{}); size > 96 {
		t.Errorf("the memory of an object has %d bytes", size)
	}
}
