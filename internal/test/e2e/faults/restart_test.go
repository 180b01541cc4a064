package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gopf.dev/gopf/internal/dev/controlplane"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// back limits the time until the operator works again after a restart of the API server,
// or a restore of its data. Tests in virtual time check the promise of 5 s. Here, other
// tests use the processors at the same time.
const back = 30 * time.Second

// The API server goes, with all its connections, and comes back on the same data; at
// the end, on older data, as after a restore from a backup. There is no proxy in
// between.
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
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
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
		if p == creation {
			if err := os.CopyFS(backup, os.DirFS(filepath.Join(data, "etcd"))); err != nil {
				t.Fatal(err)
			}
		}
		plane = start(data, 0)
		began := time.Now()
		if err := o.settles(p, back); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		t.Logf("%s: done %.1f s after the server was there again", p, time.Since(began).Seconds())
		o.checkWell(p)
	}
	if !o.Log.Has("Watching the resource again.") {
		t.Error("nothing in the log says that it was not followed")
	}

	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(data, "etcd")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(backup, filepath.Join(data, "etcd")); err != nil {
		t.Fatal(err)
	}
	plane = start(data, 0)
	began := time.Now()
	s.change("x", "v3")
	restored := map[string]string{"x": "v3", "y": "v1", "z": "v1"}
	for err := o.indexIs(restored)(); err != nil; err = o.indexIs(restored)() {
		if time.Since(began) > back {
			t.Fatalf("not within %v of the restore: %v", back, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("the restore was noticed %.1f s after the server was there again", time.Since(began).Seconds())
	kit.Eventually(t, func() error {
		if p := s.get("x"); p == nil || p.Annotations[lastHandled] != `{"spec":{"field":"v3"}}`+"\n" {
			return fmt.Errorf("x is not handled: %v", p)
		}
		return nil
	})
	s.delete("y")
	kit.Eventually(t, func() error {
		if p := s.get("y"); p != nil {
			return fmt.Errorf("y is still there, with finalizers %q", p.Finalizers)
		}
		return nil
	})
}
