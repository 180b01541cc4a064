package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/storage"
)

const (
	prefix      = storage.DefaultPrefix + "/"
	lastHandled = prefix + "last-handled-configuration"

	// memoryLimit is what a container would have.
	memoryLimit = 256 << 20
	// inTime is how long another tenant may have to wait. [stopwatch] extends it if other
	// processes use the machine, and [scene.slowness] if the API server is slow.
	inTime = 5 * time.Second
	// maxTime is the longest that it can become.
	maxTime = maxStretch*inTime + maxSlowness
)

// scene is an operator with two tenants.
type scene struct {
	*testing.T
	attacker, bystander tenant
	op                  *kit.Process
	server              int           // process id of the control plane
	health, webhooks    string        // addresses
	logged              int           // the length of the log before the attack
	served              *atomic.Int32 // objects of the bystander
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, attacker: newTenant(t, "attacker"), bystander: newTenant(t, "bystander"), health: kit.FreeAddress(t), webhooks: kit.FreeAddress(t), served: &atomic.Int32{}, server: listener(cluster.Config.Host)}
	_, port, _ := net.SplitHostPort(s.webhooks)
	// The limit of the runtime is what the command sets in a container of that size.
	s.op = kit.Launch(t, cluster.Kubeconfig, kit.NewTitledLogbook(t, "the operator's log"),
		[]string{"GOMEMLIMIT=" + strconv.Itoa(memoryLimit*9/10), "GOPF_ATTACKS_PORT=" + port}, buildOperator(t),
		"run", "--standalone", "--log-format=json", "--health="+s.health, "--namespace="+s.attacker.Name, "--namespace="+s.bystander.Name)
	kit.Eventually(t, func() error { return s.page("readyz") })
	kit.Eventually(t, s.reviewed)
	kit.Eventually(t, s.mutated)
	return s
}

// mutated checks that the mutating webhook is asked. The API server takes a moment to learn
// about it.
func (s *scene) mutated() error {
	probe := &unstructured.Unstructured{Object: fields{"apiVersion": "attacks.gopf.dev/v1", "kind": kinds.Namespaced[targets], "metadata": fields{"name": "probe"}}}
	made, err := s.bystander.Of(targets).Create(context.Background(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if made.GetLabels()["reviewed"] != "true" {
		return errors.New("a new object has no label of the mutating webhook")
	}
	return nil
}

// buildOperator compiles the operator without the race detector, which would take
// several times the memory.
func buildOperator(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "operator")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./testdata/operator").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// page reads a page of the health endpoint. A status other than 200 is an error.
func (s *scene) page(name string) error {
	client := http.Client{Timeout: inTime}
	resp, err := client.Get("http://" + s.health + "/" + name)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/%s: %d %s", name, resp.StatusCode, text)
	}
	return nil
}

// reviewed checks that the validating webhook is asked, and answers in time.
func (s *scene) reviewed() error {
	limit, watch := inTime+s.slowness(), s.watch()
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	err := s.bystander.sendRaw(ctx, targets, "denied", `{"deny":true}`)
	if err == nil || !strings.Contains(err.Error(), "denied on request") {
		return fmt.Errorf("a review: got %w", err)
	}
	if watch.late(limit) {
		return fmt.Errorf("a review took %v, longer than %v", time.Since(watch.began), limit)
	}
	return nil
}

// watch starts to measure a wait of the bystander.
func (s *scene) watch() stopwatch { return startWatch(os.Getpid(), s.server, s.op.ID()) }

// serve checks that an object of the bystander is reviewed and handled in time.
func (s *scene) serve() error {
	name, limit := fmt.Sprintf("bystander-%d", s.served.Add(1)), inTime+s.slowness()
	watch := s.watch()
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	if err := s.bystander.sendRaw(ctx, targets, name, `{"field":"x"}`); err != nil {
		return fmt.Errorf("an object of another tenant is not created: %w", err)
	}
	defer s.bystander.Remove(targets, name)
	for ctx.Err() == nil && !watch.late(limit) {
		o, err := s.bystander.Of(targets).Get(ctx, name, metav1.GetOptions{})
		if err == nil && handled(o) && o.GetLabels()["reviewed"] == "true" {
			if watch.late(limit) {
				break
			}
			s.Logf("an object of another tenant was handled within %v", time.Since(watch.began).Round(time.Millisecond))
			return s.reviewed()
		}
		time.Sleep(20 * time.Millisecond) // nothing else tells when a cluster is as it should be
	}
	return fmt.Errorf("an object of another tenant was not handled within %v: after %v", limit, time.Since(watch.began))
}

// slowness returns the time that the API server and this machine add to the handling of
// an object: it takes about ten requests, and attackers load the API server as well.
// The operator is not asked here. It is at most [maxSlowness].
func (s *scene) slowness() time.Duration {
	began := time.Now()
	err := s.bystander.sendRaw(context.Background(), plains, "Not A Name", `{}`)
	if err == nil {
		s.Error("an object without a valid name was created")
	}
	return min(maxSlowness, 10*time.Since(began))
}

// peak returns the most memory that the operator had at a time since the last reset.
func (s *scene) peak() int {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.op.ID()))
	if err != nil {
		s.Fatalf("the operator's memory: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				s.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	s.Fatal("the kernel does not tell the peak of the memory")
	return 0
}

// resetPeak lets [scene.peak] start over, so that each attack is measured by itself.
// Where the kernel cannot do that, an attack is blamed for earlier ones.
func (s *scene) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.op.ID()), []byte("5"), 0) // see above
}

// during runs an attack, and serves the bystander until it is over, and once more.
func (s *scene) during(attack func()) {
	s.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		attack()
	}()
	ready := time.Now() // the last time
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(100 * time.Millisecond):
		}
		if err := s.serve(); err != nil {
			s.Error(err)
		}
		if err := s.page("readyz"); err == nil {
			ready = time.Now()
		} else if time.Since(ready) > inTime+s.slowness() { // Kubernetes stops sending reviews to the pod
			s.Errorf("the operator is not ready for %v: %v", time.Since(ready), err)
		}
	}
}

// unharmed checks the operator after an attack.
func (s *scene) unharmed() {
	s.Helper()
	select {
	case <-s.op.Ended:
		s.Fatal("the operator has ended")
	default:
	}
	for _, name := range []string{"livez", "readyz"} {
		if err := s.page(name); err != nil {
			s.Error(err)
		}
	}
	peak := s.peak()
	s.Logf("the peak of the memory was %d MiB", peak>>20)
	if peak > memoryLimit {
		s.Errorf("the operator took %d MiB of memory, more than %d MiB", peak>>20, memoryLimit>>20)
	}
}

// blamed checks that a warning or an error in the log names the object.
func (s *scene) blamed(name string) {
	s.Helper()
	kit.Eventually(s.T, func() error {
		for line := range strings.Lines(s.op.Log.String()[s.logged:]) {
			names := strings.Contains(line, `"`+name+`"`) && strings.Contains(line, `"`+s.attacker.Name+`"`)
			if names && strings.Contains(line, `"severity": "warn"`) || names && strings.Contains(line, `"severity": "error"`) {
				s.Logf("blamed: %.300s", line)
				return nil
			}
		}
		return fmt.Errorf("no warning names %s/%s", s.attacker.Name, name)
	})
}

// logs reports whether a line of the log since the attack began contains all of the texts.
func (s *scene) logs(texts ...string) bool {
	for line := range strings.Lines(s.op.Log.String()[s.logged:]) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

// forbidden reports whether the API server refused a request.
func forbidden(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && apierrors.IsForbidden(err)
}

// of returns the scene with another test.
func (s *scene) of(t *testing.T) *scene {
	c := *s
	c.logged = len(s.op.Log.String())
	c.T, c.attacker, c.bystander = t, s.attacker.of(t), s.bystander.of(t)
	return &c
}
