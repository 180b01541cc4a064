package lease

import (
	"testing"

	"gopf.dev/gopf/internal/object"
)

// A lease written by another client is read or rejected, and can be taken over.
func FuzzLease(f *testing.F) {
	f.Add([]byte(`{"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2026-01-01T00:00:00.000000Z","renewTime":null,"leaseTransitions":-1}}`))
	f.Add([]byte(`{"spec":{"leaseDurationSeconds":2147483647}}`))
	f.Add([]byte(`{"spec":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := object.Parse(text)
		if err != nil {
			return
		}
		if r, err := parse(b); err == nil {
			r.spec()
		}
	})
}
