package kit

import (
	"errors"
	"testing"
	"time"
)

// Patience is how long anything may take that is waited for. Nothing should come
// near it, but machines may have much else to do.
const Patience = 60 * time.Second

// Eventually waits until there is no error any more.
func Eventually(t *testing.T, check func() error) {
	t.Helper()
	if err := retry(check); err != nil {
		t.Fatalf("after %v: %v", Patience, err)
	}
}

// Await waits until something holds. What it is, is told if it never does.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	notYet := errors.New("not yet")
	if retry(func() error {
		if holds() {
			return nil
		}
		return notYet
	}) != nil {
		t.Fatalf("not within %v: %s", Patience, what)
	}
}

// retry checks until there is no error, or patience is at its end: first often,
// then less so.
func retry(check func() error) error {
	pause := 5 * time.Millisecond
	for end := time.Now().Add(Patience); ; pause = min(pause*3/2, 50*time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(pause) //nolint:forbidigo // nothing tells when a cluster is as it should be
	}
}
