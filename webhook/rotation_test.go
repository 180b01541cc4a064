package webhook

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/backoff"
)

// replica is an endpoint without a socket.
type replica struct {
	endpoint *endpoint
	keeper   keeper

	mu      sync.Mutex
	bundles []announcement // newest last
}

func newReplica(store KeyStore, lifetime, check, overlap time.Duration) *replica {
	return &replica{
		endpoint: &endpoint{Local: Local{CheckEvery: check, log: slog.New(slog.DiscardHandler)}},
		keeper:   keeper{store, maker{names: []string{"host"}, lifetime: lifetime}, overlap},
	}
}

func (r *replica) run(ctx context.Context, t *testing.T) {
	if err := r.endpoint.begin(ctx, r.keeper); err != nil {
		t.Error(err)
		return
	}
	r.endpoint.keep(ctx, r.keeper, func(bundle []byte) {
		_ = backoff.Sleep(ctx, 3*time.Second) // the cluster takes a while to respond
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bundles = append(r.bundles, announcement{bundle, time.Now()})
	})
}

// serving returns the certificate for new connections, in PEM.
func (r *replica) serving() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bundles) == 0 {
		return nil
	}
	config := r.endpoint.config.Load()
	return pemOf(config.Certificates[0].Certificate[0])
}

// trusted returns the bundles that API servers may trust now: the last announcement, and
// the one before if it was replaced a moment ago.
func (r *replica) trusted(lag time.Duration) (bundles [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range r.bundles {
		if i == len(r.bundles)-1 || time.Since(r.bundles[i+1].at) < lag {
			bundles = append(bundles, a.bundle)
		}
	}
	return bundles
}

func TestServedCertificatesAreAlwaysTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			lifetime = 3 * time.Hour
			check    = time.Minute
			overlap  = 5 * time.Minute
			lag      = 2 * time.Minute
		)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		store := &MemoryStore{}
		var replicas []*replica
		start := func() {
			r := newReplica(store, lifetime, check, overlap)
			replicas = append(replicas, r)
			running.Go(func() { r.run(ctx, t) })
		}
		start()
		time.Sleep(17 * time.Second)
		start()
		time.Sleep(17 * time.Second)

		served := map[string]bool{}
		for tick := range 18 * 120 { // 18 hours in steps of 30 s
			time.Sleep(30 * time.Second)
			if tick == 1000 {
				start() // at some point in between
				time.Sleep(10 * time.Second)
			}
			for _, server := range replicas {
				cert := server.serving()
				served[string(cert)] = true
				for _, announcer := range replicas { // any of them may have announced last
					for _, bundle := range announcer.trusted(lag) {
						if !bytes.Contains(bundle, cert) {
							t.Fatalf("an untrusted certificate is served at %s", time.Now())
						}
					}
				}
				leaf := server.endpoint.config.Load().Certificates[0].Leaf
				if left := time.Until(leaf.NotAfter); left < lifetime/4 {
					t.Fatalf("a certificate is served that expires in %s", left)
				}
			}
		}
		if len(served) < 8 || len(served) > 10 {
			t.Errorf("%d certificates were served in 18 hours; each should serve for 2 of its 3 hours", len(served))
		}
		items, _, _ := store.Load(ctx)
		if r := readRing(items); len(extra(r.bundle(), nil)) > 3*len(r.current.ca) {
			t.Error("the bundle grows")
		}
		cancel()
		running.Wait()
	})
}

func TestABlockedAnnouncementKeepsTheOldCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(&MemoryStore{}, time.Hour, time.Minute, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		if err := r.endpoint.begin(ctx, r.keeper); err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		var announced atomic.Int32
		running.Go(func() {
			r.endpoint.keep(ctx, r.keeper, func([]byte) {
				if announced.Add(1) == 2 {
					_ = backoff.Sleep(ctx, 10*time.Minute) // the cluster is unreachable
				}
			})
		})
		first := r.endpoint.config.Load()
		time.Sleep(time.Hour - time.Hour/3 + 8*time.Minute)
		synctest.Wait()
		if announced.Load() != 2 || r.endpoint.config.Load() != first {
			t.Error("the next certificate is served before it was announced")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if r.endpoint.config.Load() == first {
			t.Error("the next certificate is not served although it was announced")
		}
		cancel()
		running.Wait()
	})
}

func TestTheExpiryOfEachServedCertificateIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(&MemoryStore{}, time.Hour, time.Minute, time.Minute)
		var reported []time.Time
		r.endpoint.certified = func(expires time.Time) { reported = append(reported, expires) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour+time.Minute)
		defer cancel()
		if err := r.endpoint.begin(ctx, r.keeper); err != nil {
			t.Fatal(err)
		}
		first, _ := r.endpoint.served.current.leaf()
		r.endpoint.keep(ctx, r.keeper, func([]byte) {})
		second, _ := r.endpoint.served.current.leaf()
		if len(reported) != 2 || !reported[0].Equal(first.NotAfter) || !reported[1].Equal(second.NotAfter) || !reported[1].After(reported[0]) {
			t.Errorf("reported %s, served were %s and %s", reported, first.NotAfter, second.NotAfter)
		}
	})
}

func TestReplicasRetryAFailingStoreAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(&faulty{KeyStore: &MemoryStore{}, failures: 3}, time.Hour, time.Minute, time.Minute)
		r.endpoint.random = func() float64 { return 0.5 }
		began := time.Now()
		if err := r.endpoint.begin(t.Context(), r.keeper); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*storePause*9/10 {
			t.Errorf("starting took %s", took)
		}
	})
}

func TestAFailingStoreIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{KeyStore: &MemoryStore{}, failures: 3}
		r := newReplica(store, time.Hour, time.Minute, time.Minute)
		began := time.Now()
		if err := r.endpoint.begin(t.Context(), r.keeper); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*storePause {
			t.Errorf("it took %s", took)
		}
		// If the store fails later, the server keeps serving, and retries at intervals.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		store.failures, store.asked = 1_000_000, 0
		r.endpoint.keep(ctx, r.keeper, func([]byte) {})
		if store.asked > 2*60+1 {
			t.Errorf("the store was called %d times in two hours", store.asked)
		}
	})
}

type faulty struct {
	KeyStore
	failures, asked int
}

func (f *faulty) Load(ctx context.Context) (map[string][]byte, string, error) {
	f.asked++
	if f.failures > 0 {
		f.failures--
		return nil, "", errors.New("not now")
	}
	return f.KeyStore.Load(ctx)
}

func TestReplicasThatStartTogetherAgree(t *testing.T) {
	store := &MemoryStore{}
	var all sync.WaitGroup
	certs := make(chan string, 8)
	for range cap(certs) {
		all.Go(func() {
			r, err := keeper{store, maker{names: []string{"host"}}, time.Minute}.turn(t.Context(), announcement{})
			if err != nil {
				t.Error(err)
			}
			certs <- string(r.current.cert)
		})
	}
	all.Wait()
	close(certs)
	first := <-certs
	for other := range certs {
		if other != first {
			t.Fatal("the replicas have different certificates")
		}
	}
}

func TestTheStoredRingIsReadUnchanged(t *testing.T) {
	now := time.Now().UTC()
	a, _ := selfSigned([]string{"a"}, now, time.Hour)
	b, _ := selfSigned([]string{"a"}, now, time.Hour)
	r := ring{}.propose(a, now).propose(b, now)
	for _, r := range []ring{r, r.step(now.Add(time.Minute), now, time.Second)} {
		kept := readRing(r.items())
		if !kept.current.equal(r.current) || !kept.next.equal(r.next) || !kept.nextSince.Equal(r.nextSince) ||
			!bytes.Equal(kept.previous, r.previous) || !kept.previousSince.Equal(r.previousSince) {
			t.Errorf("got %+v, want %+v", kept, r)
		}
	}
	broken := r.items()
	broken[itemKey] = []byte("oops")
	broken[itemNextSince] = []byte("oops")
	if kept := readRing(broken); !kept.current.empty() || !kept.next.empty() {
		t.Error("unusable items were not dropped")
	}
}

func TestACertificateOfTheSameCAIsServedImmediately(t *testing.T) {
	now := time.Now()
	ca, _ := selfSigned([]string{"ca"}, now, time.Hour)
	a, _ := selfSigned([]string{"a"}, now, time.Hour)
	b, _ := selfSigned([]string{"a"}, now, time.Hour)
	a.ca, b.ca = ca.cert, ca.cert
	r := ring{}.propose(a, now).propose(b, now).step(now, time.Time{}, time.Hour)
	if !r.current.equal(b) || r.previous != nil || !bytes.Equal(r.bundle(), ca.cert) {
		t.Errorf("got %+v", r)
	}
}

func TestAnExpiredCertificateIsReplacedImmediately(t *testing.T) {
	now := time.Now()
	a, _ := selfSigned([]string{"a"}, now, time.Hour)
	b, _ := selfSigned([]string{"a"}, now.Add(time.Hour), time.Hour)
	if r := (ring{}).propose(a, now).propose(b, now.Add(2*time.Hour)); !r.current.equal(b) {
		t.Error("the expired certificate is still served")
	}
	r := ring{}.propose(a, now).propose(b, now.Add(59*time.Minute))
	if at, ok := r.due(time.Time{}, time.Hour); !ok || at.After(now.Add(time.Hour)) {
		t.Errorf("due at %v", at)
	}
	if r = r.step(now.Add(61*time.Minute), time.Time{}, time.Hour); !r.current.equal(b) {
		t.Error("the expired certificate is still served")
	}
}

func pemOf(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }

func TestAStopWhileTheStoreFailsIsNotAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := Service{Name: "x", Namespace: "y", Keys: &faulty{failures: 1000}, Listen: Local{log: slog.New(slog.DiscardHandler)}}
		if err := s.Serve(ctx, nil, nil); err != nil || ctx.Err() == nil {
			t.Errorf("got %v", err)
		}
	})
}
