package lease

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/internal/test/fakeobject"
)

// cluster returns a client of a real control plane and a namespace for the test. It
// skips the test if there is none.
func cluster(t *testing.T) (client *kube.Client, ns string) {
	t.Helper()
	return kit.Client(t, kit.Existing(t), "lease-test-")
}

// contender is an elector on a real cluster.
type contender struct {
	*Elector
	elected chan time.Time
	log     *fakeobject.Log
	stop    func()
}

func contend(t *testing.T, client *kube.Client, ns, identity string, adjust ...func(*Config)) *contender {
	t.Helper()
	c := DefaultConfig(client, ns, "op", identity)
	c.Duration, c.RenewDeadline, c.RetryPeriod = 5*time.Second, 4*time.Second, 500*time.Millisecond
	for _, a := range adjust {
		a(&c)
	}
	p := &contender{elected: make(chan time.Time, 100), log: newLog()}
	c.Log = slog.New(p.log)
	var err error
	if p.Elector, err = New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx, func(ctx context.Context) {
			p.elected <- time.Now()
			<-ctx.Done()
		})
	}()
	p.stop = func() { cancel(); <-done }
	t.Cleanup(p.stop)
	return p
}

func (p *contender) wins(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-p.elected:
		return at
	case <-time.After(kit.Patience):
		t.Fatalf("%s was not elected", p.Identity)
		panic("unreachable")
	}
}

func TestClusterRenewsTheLease(t *testing.T) {
	t.Parallel()
	client, ns := cluster(t)
	a := contend(t, client, ns, "a")
	a.wins(t)
	b := contend(t, client, ns, "b")
	time.Sleep(6 * time.Second) // longer than the lease without renewals
	if len(b.elected) > 0 || a.Until().IsZero() || b.Holder() != "a" {
		t.Fatalf("a leads until %v, b was elected %d times", a.Until(), len(b.elected))
	}
}

func TestClusterHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	client, ns := cluster(t)
	// A candidate that only polls would notice the release after a minute.
	rarely := func(c *Config) {
		c.Duration, c.RenewDeadline, c.RetryPeriod = 4*time.Minute, 3*time.Minute, time.Minute
	}
	a := contend(t, client, ns, "a", rarely)
	a.wins(t)
	b := contend(t, client, ns, "b", rarely)
	kit.Await(t, "the candidate knows the holder", func() bool { return b.Holder() == "a" })
	a.stop()
	released := time.Now()
	if took := b.wins(t).Sub(released); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	body, err := client.Get(t.Context(), kube.Target{Info: leases, Namespace: ns, Name: "op"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := parse(body); err != nil || r.holder != "b" || r.duration != 4*time.Minute || r.transitions != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
	b.stop()
	for _, p := range []*contender{a, b} {
		if w := p.log.Lines("WARN"); len(w) != 0 {
			t.Errorf("%s: %q", p.Identity, w)
		}
	}
}

func TestClusterReplacesALostHolder(t *testing.T) {
	t.Parallel()
	client, ns := cluster(t)
	r := record{holder: "ghost", duration: 2 * time.Second, acquired: timestamp(time.Now()), renewed: timestamp(time.Now())}
	ghost := &Elector{Config: DefaultConfig(client, ns, "op", "ghost"), client: client}
	ghost.Log = quiet
	if err := ghost.write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if took := contend(t, client, ns, "a").wins(t).Sub(began); took < 2*time.Second {
		t.Errorf("it took %v, want it after the lease of the former holder", took)
	}
}

// writing returns those contenders that may write, asked one after another.
func writing(of []*contender) (found []*contender) {
	for _, p := range of {
		if !p.Until().IsZero() {
			found = append(found, p)
		}
	}
	return found
}

// One of many concurrent candidates is elected, and another one when it stops.
func TestClusterElectsOneOfMany(t *testing.T) {
	t.Parallel()
	client, ns := cluster(t)
	all := map[*contender]bool{}
	for _, id := range strings.Split("abcdef", "") {
		all[contend(t, client, ns, id)] = true
	}
	var mu sync.Mutex // guards all elections
	overlaps := make(chan int, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(overlaps)
		for {
			mu.Lock()
			writers := writing(slices.Collect(maps.Keys(all)))
			mu.Unlock()
			if len(writers) > 1 { // the first may have stopped before the second was asked
				writers = writing(writers)
			}
			if len(writers) > 1 {
				overlaps <- len(writers)
				return
			}
			select {
			case <-stopped:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	for len(all) > 0 {
		var leader *contender
		for limit := time.Now().Add(kit.Patience); leader == nil; time.Sleep(5 * time.Millisecond) {
			for p := range all {
				if !p.Until().IsZero() {
					leader = p
				}
			}
			if time.Now().After(limit) {
				t.Fatal("there is no leader")
			}
		}
		leader.stop()
		mu.Lock()
		delete(all, leader)
		mu.Unlock()
	}
	close(stopped)
	if n, bad := <-overlaps; bad {
		t.Errorf("%d replicas may write at the same time", n)
	}
}

func TestClusterNamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	client, _ := cluster(t)
	p := contend(t, client, "no-such-namespace", "a")
	for limit := time.Now().Add(kit.Patience); len(p.log.Lines("WARN")) == 0 && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
	}
	if w := p.log.Lines("WARN"); len(w) != 1 || !strings.Contains(w[0], "the namespace no-such-namespace must exist") {
		t.Errorf("got %q", w)
	}
}
