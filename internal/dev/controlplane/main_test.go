package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
)

// parentVariable makes the test executable start a control plane and wait to be killed.
const parentVariable = "GOPF_CONTROLPLANE_TEST_PARENT"

// running is the control plane that read-only tests share.
var running struct {
	once       sync.Once
	kubeconfig string
	stop       func()
	err        error
}

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		beParent()
	}
	code := m.Run()
	if running.stop != nil {
		running.stop()
	}
	os.Exit(code)
}

// shared returns the kubeconfig of the shared control plane.
func shared(t *testing.T) string {
	t.Helper()
	running.once.Do(func() { running.kubeconfig, running.stop, running.err = ForTests(os.Stderr) })
	if running.err != nil {
		t.Fatal(running.err)
	}
	return running.kubeconfig
}

// child is the parent's report about the control plane that it started.
type child struct {
	PID        int
	Kubeconfig string
}

// beParent starts a control plane and waits to be killed.
func beParent() {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(child{PID: c.cmd.Process.Pid, Kubeconfig: c.Kubeconfig()}); err != nil {
		os.Exit(1)
	}
	select {}
}
