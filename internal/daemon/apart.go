package daemon

// Apart runs fn on a goroutine of its own and waits for it. The stack that fn
// needs is given back with the goroutine. A daemon, which keeps its stack for as
// long as its object lives, should decode things apart: it then costs half as
// much.
//
// A panic of fn becomes one of the caller.
func Apart(fn func()) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		fn()
	}()
	if v := <-done; v != nil {
		panic(v)
	}
}
