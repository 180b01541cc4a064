//go:build unix

package controlplane

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// promised limits the time that devcluster needs to stop after SIGTERM. It needs about two
// seconds on an idle machine. Kubernetes kills processes after 30 seconds.
const promised = 30 * time.Second

func TestDataFolderKeepsObjectsAndKubeconfig(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	const path = "/api/v1/namespaces/default/configmaps"

	first := begin(t, Options{Data: data})
	before := read(t, first.Kubeconfig())
	object := connect(t, first.Kubeconfig()).create(path, `{"metadata":{"name":"kept"},"data":{"key":"value"}}`)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second := begin(t, Options{Data: data})
	if after := read(t, second.Kubeconfig()); after != before || first.Kubeconfig() != second.Kubeconfig() {
		t.Errorf("the kubeconfig changed from\n%s\nto\n%s", before, after)
	}
	code, kept := connect(t, second.Kubeconfig()).do("GET", path+"/kept", "")
	if code != http.StatusOK || lookup(kept, "metadata", "uid") != lookup(object, "metadata", "uid") {
		t.Errorf("got %d %v, want the object of before", code, kept)
	}
}

func TestASecondStartOnADataFolderIsAnError(t *testing.T) {
	data := t.TempDir()
	begin(t, Options{Data: data})
	_, err := Start(t.Context(), Options{Data: data})
	if err == nil || !strings.Contains(err.Error(), "folder "+data+" is in use by another devcluster") {
		t.Errorf("got %v, want that the folder is in use", err)
	}
}

func TestAnOccupiedPortIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	_, err = Start(t.Context(), Options{Port: port})
	if err == nil || !strings.Contains(err.Error(), "port "+strconv.Itoa(port)+" on 127.0.0.1 is taken") {
		t.Errorf("got %v, want that the port is taken", err)
	}

	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "port"), []byte(strconv.Itoa(port)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Data: data})
	if err == nil || !strings.Contains(err.Error(), "which the kubeconfig in "+data+" names, is taken") {
		t.Errorf("got %v, want that the stored port is taken", err)
	}
}

func TestItExitsWithAKilledParentAndLeavesNoFiles(t *testing.T) {
	if _, err := Build(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	temp := shortTemp(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1", "TMPDIR="+temp)
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var c child
	if err := json.NewDecoder(stdout).Decode(&c); err != nil {
		t.Fatal(err)
	}
	if !alive(c.PID) || !strings.HasPrefix(c.Kubeconfig, temp) {
		t.Fatalf("got %+v, want a running process with files in %s", c, temp)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // its error is that it was killed

	for deadline := time.Now().Add(2 * promised); alive(c.PID); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the control plane is still running")
		}
	}
	noFiles(t, temp)
}

func TestTerminationIsQuickAndLeavesNoFiles(t *testing.T) {
	temp := shortTemp(t)
	t.Setenv("TMPDIR", temp)
	c := begin(t, Options{})
	watch(t, connect(t, c.Kubeconfig()))
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(promised):
		t.Fatal("it did not end in time")
	}
	if c.exit != nil {
		t.Errorf("got %v, want exit code 0", c.exit)
	}
	noFiles(t, temp)
}

func TestACrashIsReported(t *testing.T) {
	t.Setenv("TMPDIR", shortTemp(t))
	c := begin(t, Options{})
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "killed") || !strings.Contains(err.Error(), c.Log()) {
		t.Errorf("got %v, want how it ended and the log", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stop afterwards: %v", err)
	}
}

func TestTheNextStartRemovesFoldersOfKilledProcesses(t *testing.T) {
	temp := shortTemp(t)
	t.Setenv("TMPDIR", temp)
	stale := filepath.Join(temp, "gopf-devcluster-1")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(stale, "lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	begin(t, Options{})
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the folder is gone", err)
	}
}

// begin starts a control plane that ends with the test.
func begin(t *testing.T, o Options) *ControlPlane {
	t.Helper()
	o.Progress = os.Stderr
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// watch opens a watch without an end, and waits until it is open.
func watch(t *testing.T, c *cluster) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.server+"/api/v1/namespaces?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if _, err := response.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// shortTemp creates a temporary folder whose path is short enough for sockets.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func noFiles(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v %v", left, err)
	}
}

// alive reports whether the process runs. A zombie, as orphans become in containers without
// an init process, does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
