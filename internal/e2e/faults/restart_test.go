package faults_test

import (
	"context"
	"testing"
	"time"

	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/e2e/kit"
)

// The API server goes, with all its connections, and comes back on the same data.
// There is no proxy in between.
func TestTheServerRestarts(t *testing.T) {
	t.Parallel()
	start := func(data string, port int) *controlplane.ControlPlane {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		c, err := controlplane.Start(ctx, controlplane.Options{Data: data, Port: port})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	data := t.TempDir()
	plane := start(data, 0)
	defer func() { _ = plane.Stop() }()
	config, err := kit.Prepare(t.Context(), plane.Kubeconfig(), "testdata/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newSpace(t, config)
	op, n := newOperator()
	// A proxy that nobody goes through: there is nothing in its ledger.
	o := runAs(s, newProxy(t, config), config, op, n)
	defer o.Stop()
	s.do(creation)
	for _, p := range []phase{creation, updating, deletion} {
		if p != creation {
			// The server is up for a moment only before it goes again, so that the
			// change is handled before, during or after it.
			s.do(p)
		}
		if err := plane.Stop(); err != nil {
			t.Fatal(err)
		}
		plane = start(data, 0)
		began := time.Now()
		if err := o.settles(p, soon); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		t.Logf("%s: done %.1f s after the server was there again", p, time.Since(began).Seconds())
		o.checkWell(p)
	}
	if !o.Log.Has("The resource is followed again.") {
		t.Error("nothing in the log says that it was not followed")
	}
}
