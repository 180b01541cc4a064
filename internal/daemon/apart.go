package daemon

// Apart runs fn on a separate goroutine and waits for it, which releases the stack that
// fn needs. A daemon keeps its stack as long as its object lives, so it should decode
// data inside Apart: it then needs half the memory.
//
// A panic of fn is repeated in the caller.
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
