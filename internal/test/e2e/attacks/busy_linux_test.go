package attacks_test

import (
	"runtime"
	"syscall"
	"time"
)

// busy returns how much longer than usual this machine takes for everything, because
// it has other things to do: 1 if it has none. Limits are for machines that are not
// busy.
func busy() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const work = 10 * time.Millisecond
	began, before := time.Now(), threadTime()
	for threadTime()-before < work { // it works all the time
	}
	return max(1, min(20, float64(time.Since(began))/float64(work)))
}

// threadTime returns the processor time that this thread has had.
func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		return time.Duration(time.Now().UnixNano()) // as if it were never interrupted
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
