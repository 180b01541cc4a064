package gopftest

import (
	"context"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/engine"
)

// Start runs the operator on the cluster until the test ends or stop is
// called, whichever comes first. It may be stopped more than once. If the
// operator fails, so does the test.
//
// Inside of a testing/synctest bubble all its work is done in virtual time:
// synctest.Wait returns when nothing is left to be done now.
//
// The framework's own retries have no jitter: tests may assert their exact times.
//
// On a cluster in memory, the reviews of the operator's webhooks are answered in
// process, whichever server of package webhook its settings name, or none. Without
// [gopf.AdmissionSettings.Managed], the operator keeps webhook configurations under
// a name for development if it has no server either. Servers of the test's own are
// used as they are. On a real cluster, an operator without a server gets
// [gopf.dev/gopf/webhook.Auto]. Different operators on one cluster need different names in
// Managed.
func Start(t testing.TB, op *gopf.Operator, c *Cluster, opts ...gopf.RunOption) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	opts = append([]gopf.RunOption{
		gopf.Cluster(c.RESTConfig()), gopf.Log(logger(t)), gopf.TestWebhooks(engine.Substitute{Server: c.webhookServer}),
		gopf.TestJitter(nil),
	}, opts...)
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
