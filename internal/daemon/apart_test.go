package daemon

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestAPanicInApartFailsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(context.Context, *Call) error {
			Apart(func() { panic("no such field") })
			return nil
		}))
		k.see("a", sight{})
		same(t, []string{"0s ERROR Daemon 'fn' failed with an exception and will try again in 60 seconds: panic: no such field"}, k.said())
	})
}
