package kit

import (
	"errors"
	"testing"
	"time"
)

// Patience limits all waiting. Nothing should come near it, unless the machine is
// overloaded.
const Patience = 2 * time.Minute

// Eventually waits until check returns no error.
func Eventually(t *testing.T, check func() error) {
	t.Helper()
	if err := retry(check); err != nil {
		t.Fatalf("after %v: %v", Patience, err)
	}
}

// Await waits until holds returns true. The failure message contains what.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	notYet := errors.New("not yet")
	if retry(func() error {
		if holds() {
			return nil
		}
		return notYet
	}) != nil {
		t.Fatalf("timed out after %v: %s", Patience, what)
	}
}

// retry calls check until it returns no error, or Patience is over. The interval grows.
func retry(check func() error) error {
	pause := 5 * time.Millisecond
	for end := time.Now().Add(Patience); ; pause = min(pause*3/2, 50*time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(pause) //nolint:forbidigo // there is no event to wait for
	}
}
