package model_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// childSeeds is the default number of seeds of the test of children. They are separate from
// those of the other tests.
const childSeeds = 40

const (
	parentKind = "model.gopf.dev/v1/parents"
	childKind  = "v1/configmaps"
	owner      = "model.gopf.dev" // the name of the operator
	elsewhere  = "elsewhere"      // another namespace with children
)

// Parent is an object whose children are in its spec.
type Parent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Children []kid `json:"children"`
	} `json:"spec"`
}

// kid is a declared child.
type kid struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Away    bool   `json:"away,omitempty"`    // in the other namespace
	Needs   string `json:"needs,omitempty"`   // the name of one that is declared before
	Once    bool   `json:"once,omitempty"`    // created only
	Last    bool   `json:"last,omitempty"`    // pruned last
	Group   bool   `json:"group,omitempty"`   // part of a rolling update
	Initial bool   `json:"initial,omitempty"` // its value belongs to other clients after the creation
}

func (k kid) namespace() string {
	if k.Away {
		return elsewhere
	}
	return "default"
}

// family is the world of a test of children: a cluster, an operator and users.
type family struct {
	t       *testing.T
	cluster *gopftest.Cluster
	rand    *rand.Rand
	status  bool // the state is in the status
	every   bool // the handler is also called every minute
	names   []string
	ledger  ledger
	began   time.Time

	inStatus, inAnnotations *atomic.Int64 // inventories that were found there

	stripped map[string]bool // parents whose state users have removed in this episode
	// unlabelled has the parents of children whose label users have removed in this episode.
	unlabelled map[string]bool

	mu      sync.Mutex
	lines   []string
	process *childProcess
	faults  []*gopftest.Fault
}

func (f *family) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf("%9.3f ", time.Since(f.began).Seconds())+fmt.Sprintf(format, args...))
}

// childProcess is one run of the operator. It ends at the n-th write from now, if n is not
// 0: before that write, or after it.
type childProcess struct {
	family *family
	next   http.RoundTripper
	stop   context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	dead  bool
	n     int
	after bool
}

// RoundTrip implements http.RoundTripper.
func (p *childProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(processHeader, "1")
	p.mu.Lock()
	fatal := false
	if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "reviews") && p.n > 0 {
		p.n--
		fatal = p.n == 0
	}
	dead, after := p.dead, p.after
	p.dead = p.dead || fatal
	p.mu.Unlock()
	switch {
	case dead:
		return nil, errKilled
	case fatal && after:
		if resp, err := p.next.RoundTrip(r); err == nil {
			_ = resp.Body.Close()
		}
		fallthrough
	case fatal:
		p.family.note("killed at %s %s, after=%v", r.Method, r.URL.Path, after)
		go p.stop()
		return nil, errKilled
	}
	resp, err := p.next.RoundTrip(r)
	if err == nil && p.isDead() {
		_ = resp.Body.Close()
		return nil, errKilled
	}
	return resp, err
}

func (p *childProcess) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// start runs the operator.
func (f *family) start() {
	identity := gopf.Identity(owner)
	if f.status {
		identity = gopf.Identity(owner, gopf.StateInStatus(stateKey))
	}
	op := gopf.New(identity)
	op.Settings.Peering.Standalone = true
	opts := []gopf.ReconcileOption{gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces())}
	if f.every {
		opts = append(opts, gopf.Every(time.Minute))
	}
	gopf.For[*Parent](op, parentKind).Reconcile("children", declareKids, opts...)
	ctx, stop := context.WithCancel(context.Background())
	p := &childProcess{family: f, next: f.cluster.Transport(), stop: stop, done: make(chan struct{})}
	config := f.cluster.RESTConfig()
	config.Transport = p
	f.process = p
	f.note("the operator starts")
	go func() {
		defer close(p.done)
		if err := op.Run(ctx, gopf.Cluster(config), gopf.Log(discard)); err != nil && !p.isDead() && !errors.Is(err, context.Canceled) {
			f.note("the operator has ended: %v", err)
		}
	}()
}

// end ends the operator: gracefully, or as if it was killed.
func (f *family) end(killed bool) {
	f.process.mu.Lock()
	f.process.dead = f.process.dead || killed
	f.process.mu.Unlock()
	f.process.stop()
	<-f.process.done
}

func declareKids(_ context.Context, r *gopf.Reconciliation[*Parent]) error {
	declared := map[string]*gopf.Child[*corev1.ConfigMap]{}
	for _, k := range r.Object.Spec.Children {
		var opts []gopf.WantOption
		if k.Once {
			opts = append(opts, gopf.CreateOnly())
		}
		if k.Last {
			opts = append(opts, gopf.PruneLast())
		}
		if k.Group {
			opts = append(opts, gopf.RollingUpdate("group", 1))
		}
		if k.Initial {
			opts = append(opts, gopf.CreateOnlyFields("data.value"))
		}
		if on := declared[k.Needs]; on != nil {
			opts = append(opts, gopf.DependsOn(on))
		}
		child := &corev1.ConfigMap{Data: map[string]string{"value": k.Value, "fixed": "yes"}}
		child.Name, child.Namespace = k.Name, k.namespace()
		declared[k.Name] = gopf.Want(r, child, opts...)
	}
	return nil
}

// TestChildrenAreAsDeclaredWhateverHappens runs a random operator whose children users
// change and delete, with faults. At rest, the children must be the declared ones, no
// object of others may be touched, and nothing may be written.
func TestChildrenAreAsDeclaredWhateverHappens(t *testing.T) {
	from, n := number(t, "GOPF_MODEL_FROM", 0), number(t, "GOPF_MODEL_SEEDS", childSeeds)
	if one := number(t, "GOPF_MODEL_SEED", -1); one >= 0 {
		from, n = one, 1
	}
	var inStatus, inAnnotations atomic.Int64 // inventories that were found there
	t.Cleanup(func() {
		if n >= childSeeds && (inStatus.Load() == 0 || inAnnotations.Load() == 0) {
			t.Errorf("%d inventories were in the status, and %d in annotations; want some of both", inStatus.Load(), inAnnotations.Load())
		}
	})
	for seed := from; seed < from+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), 2))
				f := &family{
					t: t, cluster: gopftest.NewCluster(t, childKind), rand: r, began: time.Now(), inStatus: &inStatus, inAnnotations: &inAnnotations,
					status: chance(r, 40), every: chance(r, 20), names: []string{"p0", "p1"}[:1+r.IntN(2)], ledger: newLedger(),
				}
				f.cluster.Create(t, parentDefinition(t))
				f.cluster.CreateNamespace(t, elsewhere)
				f.note("state in the status: %v, every minute: %v", f.status, f.every)
				f.live()
				if wrong := f.ledger.problems; len(wrong) > 0 {
					t.Errorf("seed %d:\n%s\n\n%s", seed, strings.Join(wrong[:min(10, len(wrong))], "\n"), strings.Join(f.lines, "\n"))
				}
			})
		})
	}
}

// live performs random episodes, and checks the state after each of them.
func (f *family) live() {
	f.start()
	for range 2 + f.rand.IntN(3) {
		f.stripped, f.unlabelled = map[string]bool{}, map[string]bool{}
		for range 3 + f.rand.IntN(8) {
			time.Sleep(pick(f.rand, []time.Duration{0, 20 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}))
			if f.process.isDead() {
				f.end(true)
				f.start()
			}
			if chance(f.rand, 30) {
				f.trouble()
			} else {
				f.use()
			}
		}
		f.calm()
		quiet(30 * time.Minute) // longer than the longest delays after errors and fights
		f.check("at rest")
		before := f.writes()
		quiet(20 * time.Minute)
		f.checkWrites("an idle operator", before)
	}
	f.note("restart")
	f.end(false)
	before := f.writes()
	f.start()
	quiet(20 * time.Minute)
	f.checkWrites("a restarted operator", before)
	f.check("after a restart")
	f.end(false)
}

// calm ends all faults, and starts the operator if it was killed.
func (f *family) calm() {
	for _, fault := range f.faults {
		fault.Stop()
	}
	f.faults = nil
	f.note("calm")
	f.process.mu.Lock()
	f.process.n = 0
	f.process.mu.Unlock()
	if f.process.isDead() {
		f.end(true)
		f.start()
	}
}

// trouble adds a fault, or ends the operator.
func (f *family) trouble() {
	r := f.rand
	kind := pick(r, []string{"configmaps", "configmaps", "parents"})
	fault := func(name string, m gopftest.Match, e gopftest.Effect) {
		f.note("fault: %s", name)
		f.faults = append(f.faults, f.cluster.Fault(m, e))
	}
	ours := gopftest.Writes(kind).Where(ofOperator).First(1 + r.IntN(3))
	switch r.IntN(9) {
	case 0:
		f.note("kill")
		f.end(true)
		f.start()
	case 1:
		f.note("stop")
		f.end(false)
		time.Sleep(pick(r, []time.Duration{0, time.Minute}))
		f.start()
	case 2, 3:
		f.process.mu.Lock()
		f.process.n, f.process.after = 1+r.IntN(4), chance(r, 50)
		f.note("crash at write %d, after=%v", f.process.n, f.process.after)
		f.process.mu.Unlock()
	case 4:
		f.note("cut streams")
		f.cluster.CutStreams()
	case 5:
		f.note("expire and cut streams")
		f.cluster.Expire()
		f.cluster.CutStreams()
	case 6:
		fault("lost responses of "+kind, ours, gopftest.LoseAnswer())
	case 7:
		fault("failures of "+kind, ours, gopftest.Fail(pick(r, []int{409, 422, 500, 503})))
	case 8:
		fault("late events of "+kind, gopftest.Requests("watch", kind).During(time.Minute), gopftest.DelayEvents(pick(r, []time.Duration{50 * time.Millisecond, 5 * time.Second})))
	}
}
