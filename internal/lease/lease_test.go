package lease

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func leader(t *testing.T, what string, all ...*replica) *replica {
	t.Helper()
	var found *replica
	for _, r := range all {
		if r.leading() {
			if found != nil {
				t.Errorf("%s: both %s and %s lead", what, found.Identity, r.Identity)
			}
			found = r
		}
	}
	if found == nil {
		t.Fatalf("%s: there is no leader", what)
	}
	return found
}

func TestTheRecordHasTheFormatOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		want := map[string]any{"holderIdentity": "a", "leaseDurationSeconds": 15.0, "leaseTransitions": 0.0,
			"acquireTime": "2000-01-01T00:00:00.000000Z", "renewTime": "2000-01-01T00:00:00.000000Z"}
		if d := cmp.Diff(want, s.spec()); d != "" {
			t.Errorf("held: -want +got\n%s", d)
		}
		if got := a.Until(); !got.Equal(s.Started.Add(10 * time.Second)) {
			t.Errorf("until: got %v", got)
		}
		a.stop()
		want["holderIdentity"], want["leaseDurationSeconds"] = "", 1.0
		want["acquireTime"], want["renewTime"] = "2000-01-01T00:00:01.000000Z", "2000-01-01T00:00:01.000000Z"
		if d := cmp.Diff(want, s.spec()); d != "" {
			t.Errorf("released: -want +got\n%s", d)
		}
		s.join(t, "b")
		settle(time.Second)
		if got := s.spec(); got["holderIdentity"] != "b" || got["leaseTransitions"] != 1.0 {
			t.Errorf("taken: got %v", got)
		}
	})
}

// Other replicas may have seen the renewal long before we get its response.
func TestUntilCountsFromWhenTheRenewalWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a", func(r *replica) {
			r.way.set(func(req *http.Request) (f fault) {
				if req.Method != http.MethodGet {
					f.after = 4 * time.Second
				}
				return f
			})
		})
		settle(4 * time.Second)
		if got := time.Until(a.Until()); got != 6*time.Second {
			t.Errorf("elected: %v left", got)
		}
		for range 1000 {
			settle(10 * time.Millisecond)
			renewed, err := time.Parse(time.RFC3339, s.spec()["renewTime"].(string))
			if err != nil {
				t.Fatal(err)
			}
			if a.Until().After(renewed.Add(10*time.Second + time.Microsecond)) {
				t.Fatalf("renewed at %v, may write until %v", renewed, a.Until())
			}
		}
	})
}

func TestAReleasedLeaseIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		b := s.join(t, "b")
		settle(time.Minute)
		if got := leader(t, "first", a, b); got != a || b.Holder() != "a" {
			t.Errorf("got %s, b sees %q", got.Identity, b.Holder())
		}
		a.stop()
		settle(0)
		if got := leader(t, "second", a, b); got != b {
			t.Errorf("got %s", got.Identity)
		}
	})
}

// Without permission to watch, the standby reads the lease periodically.
func TestAReleasedLeaseIsTakenWithinTheRetryPeriodWithoutWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		b := s.join(t, "b", func(r *replica) {
			r.way.set(func(req *http.Request) (f fault) {
				if strings.HasSuffix(req.URL.Path, "/leases") && req.Method == http.MethodGet {
					f.refuse = http.StatusForbidden
				}
				return f
			})
		})
		settle(time.Minute)
		a.stop()
		settle(2 * time.Second)
		leader(t, "second", b)
		if got := b.log.Lines("WARN"); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	})
}

func TestALostHolderIsReplacedWhenItsLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		b := s.join(t, "b")
		settle(time.Minute)
		first := leader(t, "first", a, b)
		other := map[*replica]*replica{a: b, b: a}[first]
		first.way.set(func(*http.Request) fault { return fault{drop: true} })
		settle(10 * time.Second)
		if first.leading() {
			t.Error("it is still the leader")
		}
		settle(7 * time.Second)
		if got := leader(t, "second", a, b); got != other {
			t.Errorf("got %s", got.Identity)
		}
		if last := first.history()[len(first.history())-1]; !strings.HasSuffix(last, " lost") {
			t.Errorf("got %q", first.history())
		}
		// It becomes a candidate again.
		first.way.set(nil)
		settle(10 * time.Second)
		other.stop()
		settle(0)
		if got := leader(t, "third", a, b); got != first {
			t.Errorf("got %s", got.Identity)
		}
	})
}

func TestADisconnectedLeaderLeadsAgainIfTheLeaseIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		a.way.set(func(*http.Request) fault { return fault{refuse: http.StatusServiceUnavailable} })
		settle(time.Minute)
		a.way.set(nil)
		settle(5 * time.Second)
		if len(a.history()) != 3 || s.spec()["leaseTransitions"] != 0.0 {
			t.Errorf("got %q, %v", a.history(), s.spec())
		}
		if got := a.log.Lines("WARN"); len(got) != 2 { // one for the failures, one for the loss
			t.Errorf("got %q", got)
		}
	})
}

func TestALostResponseDoesNotLoseTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		n := 0
		a := s.join(t, "a", func(r *replica) {
			r.way.set(func(req *http.Request) (f fault) {
				if req.Method != http.MethodGet {
					n++
					f.lose = n%2 == 1
				}
				return f
			})
		})
		settle(10 * time.Minute)
		leader(t, "it", a)
		if len(a.history()) != 1 {
			t.Errorf("got %q", a.history())
		}
	})
}

// The response to the write that takes the lease is lost, and then the replica stops.
// The others must not have to wait until the lease expires.
func TestALeaseTakenWithALostResponseIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a", func(r *replica) {
			r.way.set(func(req *http.Request) (f fault) {
				if req.Method == http.MethodPost {
					f.lose = true
				}
				return f
			})
		})
		settle(time.Millisecond)
		a.stop()
		if got := s.spec()["holderIdentity"]; got != "" {
			t.Errorf("the holder is %q", got)
		}
	})
}

func TestTheLeaseIsKeptWhileTheWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a", func(r *replica) {
			r.work = func(ctx context.Context) {
				<-ctx.Done()
				for range 30 {
					time.Sleep(time.Second)
					if r.Until().IsZero() {
						t.Error("it may not write although it has not ended yet")
					}
				}
			}
		})
		settle(time.Second)
		b := s.join(t, "b")
		settle(time.Second)
		a.stop()
		settle(0)
		leader(t, "after it", a, b)
		if d := cmp.Diff([]string{"32s"}, b.history()); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	})
}

func TestWorkThatEndsByItselfReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a", func(r *replica) { r.work = func(context.Context) { time.Sleep(5 * time.Second) } })
		b := s.join(t, "b")
		settle(10 * time.Second)
		if a.leading() || s.spec()["holderIdentity"] != "b" || !b.leading() {
			t.Errorf("got %v", s.spec())
		}
	})
}

func TestALeaseTakenByForceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		s.edit(t, `{"spec":{"holderIdentity":"thief"}}`)
		settle(2 * time.Second)
		if a.leading() || len(a.history()) != 2 || a.Holder() != "thief" {
			t.Errorf("got %q, %q", a.history(), a.Holder())
		}
		settle(16 * time.Second)
		leader(t, "the thief has not renewed it", a)
	})
}

func TestOtherClientsChangesOfTheLeaseAreTolerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		for i := range 100 {
			settle(1700 * time.Millisecond)
			s.edit(t, fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
		}
		if len(a.history()) != 1 || len(a.log.Lines("WARN")) != 0 {
			t.Errorf("got %q, %q", a.history(), a.log.Lines("WARN"))
		}
	})
}

func TestADeletedLeaseIsRecreatedByItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		b := s.join(t, "b")
		for range 20 {
			settle(5 * time.Second)
			s.Delete(leasePath)
			if b.leading() {
				t.Fatal("the standby took the lease although its holder works")
			}
		}
		settle(5 * time.Second)
		if leader(t, "it", a, b) != a || len(a.history()) != 1 {
			t.Errorf("got %q", a.history())
		}
	})
}

// For example a pod name that is reused while the earlier pod still runs.
func TestASecondProcessWithTheSameIdentityWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "same")
		settle(time.Second)
		b := s.join(t, "same")
		settle(10 * time.Minute)
		if leader(t, "one", a, b) != a {
			t.Error("the second process is the leader")
		}
		a.stop()
		settle(0)
		leader(t, "the other", a, b)
	})
}

func TestMissingPermissionsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a", func(r *replica) {
			r.way.set(func(*http.Request) fault { return fault{refuse: http.StatusForbidden} })
		})
		b := s.join(t, "b", func(r *replica) { r.Namespace = "nowhere" })
		settle(10 * time.Minute)
		for r, needed := range map[*replica]string{a: "a Role in the namespace ns with the verbs get, list, watch, create and patch", b: "the namespace nowhere must exist"} {
			if got := r.log.Lines("WARN"); len(got) != 1 || !strings.Contains(got[0], needed) {
				t.Errorf("got %q, want %q", got, needed)
			}
		}
		a.way.set(nil)
		settle(3 * time.Second)
		leader(t, "permitted", a)
	})
}

func TestStoppingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Second)
		a.way.set(func(*http.Request) fault { return fault{before: time.Hour} })
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > 2*releaseLimit {
			t.Errorf("it took %v", took)
		}
	})
}

func TestALeaderWritesOncePerRetryPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.join(t, "a")
		s.join(t, "b")
		settle(time.Hour)
		if n := s.Writes(); n < 3600/2 || n > 3600*10/16+10 {
			t.Errorf("%d writes in one hour", n)
		}
	})
}

func TestInvalidConfigurationsAreRejected(t *testing.T) {
	good := Config{Namespace: "ns", Name: "op", Identity: "a", Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for problem, spoil := range map[string]func(*Config){
		"an identity":               func(c *Config) { c.Identity = "" },
		"must be positive":          func(c *Config) { c.RetryPeriod = 0 },
		"twice the retry period":    func(c *Config) { c.RetryPeriod = 6 * time.Second },
		"must be longer than its":   func(c *Config) { c.Duration = 10 * time.Second },
		"a namespace, a name and a": func(c *Config) { c.Namespace = "" },
	} {
		c := good
		spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got %v, want %q", err, problem)
		}
	}
}

// Clocks of different machines are never compared.
func TestOnlyTheTimeSinceTheLastChangeCounts(t *testing.T) {
	now := time.Now()
	held := record{holder: "x", duration: 15 * time.Second, renewed: now.Add(-time.Hour)}
	s := sight{}.look(held, "1", now)
	for after, want := range map[time.Duration]bool{0: false, 14999 * time.Millisecond: false, 15 * time.Second: true} {
		if got, at := s.free(now.Add(after), time.Minute); got != want || !at.Equal(now.Add(15*time.Second)) {
			t.Errorf("after %v: got %v, %v", after, got, at)
		}
	}
	again := s.look(held, "2", now.Add(10*time.Second))
	if free, _ := again.free(now.Add(15*time.Second), 0); !free {
		t.Error("another version of the same record counts as a renewal")
	}
	held.renewed = now.Add(-59 * time.Minute)
	renewed := s.look(held, "2", now.Add(10*time.Second))
	if free, _ := renewed.free(now.Add(24*time.Second), 0); free {
		t.Error("a renewal did not extend the lease")
	}
	if free, _ := s.vanished().free(now, 0); free {
		t.Error("a deleted lease is free although its holder may work")
	}
	if free, _ := (sight{}).free(now, time.Hour); !free {
		t.Error("a lease that never existed is not free")
	}
	held.duration = 0
	if free, at := (sight{}).look(held, "1", now).free(now, time.Hour); free || !at.Equal(now.Add(time.Hour)) {
		t.Error("a record without a duration does not use ours")
	}
}

// With many replicas and an unreliable network, no two may ever write.
func TestNoTwoReplicasMayEverWrite(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, rand.New(rand.NewPCG(seed, 42))) })
		})
	}
}

func storm(t *testing.T, random *rand.Rand) {
	s := newServer(t)
	var running []*replica
	var steps, led int
	names := 0
	faulty := func(level float64) func(*http.Request) fault {
		// Each replica has its own random source, because requests are concurrent.
		source := rand.New(&lockedSource{source: rand.NewPCG(random.Uint64(), 1)})
		return func(*http.Request) (f fault) {
			if source.Float64() > level {
				return f
			}
			switch source.IntN(6) {
			case 0:
				f.drop = true
			case 1:
				f.lose = true
			case 2:
				f.refuse = []int{500, 503, 504, 429, 409}[source.IntN(5)]
			case 3:
				f.before = time.Duration(source.IntN(20000)) * time.Millisecond
			case 4:
				f.after = time.Duration(source.IntN(20000)) * time.Millisecond
			case 5:
				f.before, f.lose = time.Duration(source.IntN(12000))*time.Millisecond, true
			}
			return f
		}
	}
	join := func() {
		names++
		running = append(running, s.join(t, fmt.Sprint("r", names), func(r *replica) {
			lag := time.Duration(random.IntN(4000)) * time.Millisecond
			r.work = func(ctx context.Context) { <-ctx.Done(); time.Sleep(lag) }
			r.way.set(faulty(0.3))
		}))
	}
	for range 3 {
		join()
	}
	var stopping []chan struct{}
	var all []*replica
	for ; steps < 400; steps++ {
		switch r := running[random.IntN(len(running))]; random.IntN(8) {
		case 0: // cut off
			r.way.set(func(*http.Request) fault { return fault{drop: true} })
		case 1, 2:
			r.way.set(faulty(random.Float64()))
		case 3: // healed
			r.way.set(faulty(0))
		case 4:
			if s.Object(leasePath) != nil {
				s.edit(t, fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, steps))
			}
		case 5: // stopped, and another one started
			running = slices.DeleteFunc(running, func(x *replica) bool { return x == r })
			stopped := make(chan struct{})
			stopping = append(stopping, stopped)
			all = append(all, r)
			go func() { defer close(stopped); r.stop() }()
			join()
		}
		for range random.IntN(300) {
			time.Sleep(20 * time.Millisecond)
			writers := 0
			for _, r := range slices.Concat(running, all) {
				if r.leading() {
					writers++
				}
			}
			if writers > 1 {
				t.Fatalf("step %d: %d replicas may write", steps, writers)
			}
			led += writers
		}
	}
	if led == 0 {
		t.Error("there was never a leader")
	}
	for _, r := range running {
		r.way.set(nil)
	}
	time.Sleep(time.Minute)
	leader(t, "after the storm", running...)
	for _, r := range running {
		r.stop()
	}
	for _, stopped := range stopping {
		<-stopped
	}
	if got := s.spec()["holderIdentity"]; got != "" {
		t.Errorf("at the end, the holder is %q", got)
	}
}

// A client that may write the Lease must not be able to stop all replicas for decades.
func TestAForeignLeaseDurationCountsForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		b := s.join(t, "b")
		settle(time.Minute)
		leader(t, "before", a, b)
		s.edit(t, `{"spec":{"holderIdentity":"stranger","leaseDurationSeconds":2147483647}}`)
		settle(9*time.Minute + 50*time.Second)
		if a.leading() || b.leading() {
			t.Error("the lease was taken within ten minutes")
		}
		settle(20 * time.Second)
		leader(t, "after", a, b)
	})
}

// The API server refuses a Lease with a negative number of transitions, so an overflow would
// stop all replicas forever.
func TestALeaseWithTheLargestNumberOfTransitionsIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := s.join(t, "a")
		settle(time.Minute)
		s.edit(t, `{"spec":{"holderIdentity":"stranger","leaseTransitions":2147483647}}`)
		settle(time.Minute)
		leader(t, "after", a)
		if got := s.spec()["leaseTransitions"]; got != float64(math.MaxInt32) {
			t.Errorf("got %v transitions", got)
		}
	})
}

func TestBelievedDurations(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, test := range []struct{ claimed, own, want time.Duration }{
		{0, 15 * time.Second, 15 * time.Second},
		{-time.Hour, 15 * time.Second, 15 * time.Second},
		{time.Second, 15 * time.Second, time.Second},
		{30 * time.Second, 15 * time.Second, 30 * time.Second},
		{10 * time.Minute, 15 * time.Second, 10 * time.Minute},
		{10*time.Minute + 1, 15 * time.Second, 10 * time.Minute},
		{68 * year, time.Minute, 10 * time.Minute},
		{68 * year, 2 * time.Minute, 20 * time.Minute},
		{15 * time.Minute, 2 * time.Minute, 15 * time.Minute},
		{68 * year, 60 * year, 60 * year}, // ten times that is no duration
	} {
		if got := believed(test.claimed, test.own); got != test.want {
			t.Errorf("claimed %v, own %v: got %v, want %v", test.claimed, test.own, got, test.want)
		}
	}
}
