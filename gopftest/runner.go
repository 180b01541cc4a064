package gopftest

import (
	"context"
	"testing"

	"gopf.dev/gopf"
)

// Start runs the operator on the cluster until the test ends or stop is
// called, whichever comes first. It may be stopped more than once. If the
// operator fails, so does the test.
//
// Inside of a testing/synctest bubble all its work is done in virtual time:
// synctest.Wait returns when nothing is left to be done now.
func Start(t testing.TB, op *gopf.Operator, c *Cluster, opts ...gopf.RunOption) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	opts = append([]gopf.RunOption{gopf.Cluster(c.RESTConfig()), gopf.Log(logger(t))}, opts...)
	go func() {
		done <- op.Run(ctx, opts...)
		close(done)
	}()
	stop = func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator has failed: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}
