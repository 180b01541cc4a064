package gopftest

import (
	"context"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/engine"
)

// Start runs the operator on the cluster until the test ends or stop is called. stop
// waits for the shutdown and may be called more than once. The test fails if the
// operator returns an error.
//
// A failed test prints the last 200 log lines of the operator from INFO on. With -v, all
// lines are printed, including DEBUG.
//
// In a testing/synctest bubble, the operator runs in virtual time: synctest.Wait returns
// when nothing is left to do now.
//
// The framework's own retries have no jitter: tests may assert their exact times.
//
// On an in-memory cluster, admission webhooks are served in process, whichever server of
// package webhook the settings declare, or none. If neither a server nor
// [gopf.AdmissionSettings.Managed] is set, the operator keeps its webhook configurations
// under a name for development. A server type defined by the test is used as it is. On a
// real cluster, an operator without a server uses [gopf.dev/gopf/webhook.Auto].
// Different operators on one cluster need different names in Managed.
//
// If the environment variable GOPF_TEST_AS has the path of a manifest, the operator acts as
// the service account in it, with exactly the permissions of its roles. A request that they
// do not allow fails the test. "gopf permissions --verify" runs tests this way. Requests of
// the test itself stay privileged. On a real cluster, the manifest is applied.
func Start(t testing.TB, op *gopf.Operator, c *Cluster, opts ...gopf.RunOption) (stop func()) {
	t.Helper()
	op.Settings.Execution.ReportLostEdits = true
	c.learn(op)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	opts = append([]gopf.RunOption{
		gopf.Cluster(c.assume(t, op)), gopf.Log(logger(t)), gopf.TestSeam{}.Webhooks(engine.Substitute{Server: c.webhookServer}),
		gopf.TestSeam{}.Jitter(nil),
	}, opts...)
	go func() {
		done <- op.Run(ctx, opts...)
		close(done)
	}()
	stop = func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator failed: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}
