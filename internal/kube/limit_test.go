package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/object"
)

func TestTheLimitAdapts(t *testing.T) {
	bounds := InFlight{Start: 32, Min: 2, Max: 40}
	cases := map[string]struct {
		limit      float64
		busy       int
		took       time.Duration
		overloaded bool
		want       float64
	}{
		"halved under load":       {limit: 32, busy: 32, overloaded: true, want: 16},
		"not below the minimum":   {limit: 3, busy: 1, overloaded: true, want: 2},
		"grows while used":        {limit: 10, busy: 10, want: 10.1},
		"grows while half used":   {limit: 10, busy: 5, want: 10.1},
		"stays while hardly used": {limit: 10, busy: 4, want: 10},
		"not above the maximum":   {limit: 40, busy: 40, want: 40},
		"stays while slow":        {limit: 32, busy: 32, took: slowResponse, want: 32},
		"grows while not so slow": {limit: 32, busy: 32, took: slowResponse - 1, want: 32 + 1./32},
		"recovers while slow":     {limit: 10, busy: 10, took: slowResponse, want: 10.1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := bounds.adapt(c.limit, c.busy, c.took, c.overloaded); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestBoundsAreNormalized(t *testing.T) {
	for _, b := range []InFlight{{}, {Start: 10}, {Min: 5, Max: 3}, {Start: -1, Min: -1, Max: -1}} {
		l := newLimiter(b)
		if l.limit < 1 || l.bounds.Min < 1 || l.bounds.Max < l.bounds.Min {
			t.Errorf("%+v: got the limit %v and the bounds %+v", b, l.limit, l.bounds)
		}
	}
}

func TestRequestsGetSlotsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(InFlight{Start: 1, Min: 1, Max: 1})
		first, _ := l.acquire(t.Context(), "")
		var order []int
		var all sync.WaitGroup
		for i := range 5 {
			time.Sleep(time.Second)
			all.Go(func() {
				ctx := t.Context()
				if i == 2 { // is canceled
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
					defer cancel()
				}
				s, err := l.acquire(ctx, "")
				if err != nil {
					return
				}
				order = append(order, i)
				l.release(s, nothing)
			})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		l.release(first, nothing)
		all.Wait()
		if len(order) != 4 || order[0] != 0 || order[1] != 1 || order[2] != 3 || order[3] != 4 {
			t.Errorf("order: got %v", order)
		}
		if l.busy != 0 || len(l.waiting) != 0 {
			t.Errorf("at the end %d slots are busy and %d requests wait", l.busy, len(l.waiting))
		}
	})
}

func TestOneBurstOfRejectionsHalvesTheLimitOnce(t *testing.T) {
	l := newLimiter(InFlight{Start: 16, Min: 1, Max: 16})
	var slots []slot
	for i := range 16 {
		s, _ := l.acquire(t.Context(), []string{"a", "b"}[i%2])
		slots = append(slots, s)
	}
	for _, s := range slots {
		l.release(s, overloaded)
	}
	if l.limit != 8 {
		t.Errorf("after one burst: got %v, want 8", l.limit)
	}
	s, _ := l.acquire(t.Context(), "")
	l.release(s, overloaded)
	if l.limit != 4 {
		t.Errorf("after another: got %v, want 4", l.limit)
	}
}

func TestRequestsInFlightAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, most := 0, 0
		f := answers(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return ok(onePod)(req)
		})
		client, _ := f.client(t, func(o *Options) { o.InFlight = InFlight{Start: 4, Min: 1, Max: 4} })
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := patchIt(t.Context(), client); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != 3 { // all are for one namespace, and three quarters of 4
			t.Errorf("at most %d in flight, want 3", most)
		}
	})
}

func TestAListDoesNotBlockOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(ok(`{"metadata":{"resourceVersion":"9"},"items":[`+onePod+`]}`), ok(onePod)).
			client(t, func(o *Options) { o.InFlight = InFlight{Start: 1, Min: 1, Max: 1} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := client.List(ctx, pods, "", ListOptions{}, func(*object.Body) error { return patchIt(ctx, client) })
		if err != nil {
			t.Errorf("a request made while listing: %v", err)
		}
	})
}

func TestReservedCapacityIsNotUsedByOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, most := 0, 0
		f := answers(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return ok(onePod)(req)
		})
		client, _ := f.client(t, func(o *Options) { o.InFlight = InFlight{Start: 4, Min: 1, Max: 4} })
		reserved := client.Reserved(2).WithBackoffs(nil)
		var all sync.WaitGroup
		defer all.Wait()
		for range 100 {
			all.Go(func() { _ = patchIt(t.Context(), client) })
		}
		synctest.Wait()
		begun := time.Now()
		for range 6 {
			all.Go(func() {
				if err := patchIt(t.Context(), reserved); err != nil {
					t.Error(err)
				}
				if waited := time.Since(begun); waited > 3*time.Second {
					t.Errorf("a request of the reserved client took %s, want three rounds of two requests", waited)
				}
			})
		}
		all.Wait()
		if most != 3+2 { // all are for one namespace
			t.Errorf("at most %d in flight, want 3 and 2", most)
		}
	})
}

// A tenant may cause any number of slow requests for its own objects.
func TestRequestsForOneNamespaceDoNotDelayThoseForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(InFlight{Start: 2, Max: 2})
		request := func(namespace string) (waited time.Duration) {
			began := time.Now()
			s, err := l.acquire(t.Context(), namespace)
			if err != nil {
				t.Error(err)
			}
			waited = time.Since(began)
			time.Sleep(time.Second)
			l.release(s, nothing)
			return waited
		}
		for range 100 {
			go request("attacker")
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go l.acquire(ctx, "impatient")
		synctest.Wait()
		cancel()
		synctest.Wait()
		for range 3 {
			if waited := request("other"); waited > time.Second {
				t.Errorf("waited for %v", waited)
			}
		}
		time.Sleep(time.Minute)
		if _, busy, waiting := l.load(); busy != 0 || waiting != 0 || len(l.order)+len(l.waiting) != 0 {
			t.Errorf("%d are busy, %d wait: %v", busy, waiting, l.order)
		}
	})
}

func TestTheNamespaceOfARequestIsInItsPath(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/x/pods/y": "x", "/apis/g/v1/namespaces/x/ys": "x", "/api/v1/namespaces/x": "x", "/api/v1/namespaces": "", "/apis/g/v1/ys": "", "": "",
	} {
		if got := namespaceOf(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// Otherwise requests that wait for something could take all slots, even if it is another
// request.
func TestANamespaceHasThreeQuartersOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(InFlight{Start: 8, Min: 8, Max: 8})
		var slots []slot
		for range 6 {
			s, err := l.acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			slots = append(slots, s)
		}
		late := make(chan slot)
		go func() {
			s, _ := l.acquire(t.Context(), "a")
			late <- s
		}()
		synctest.Wait()
		for _, namespace := range []string{"b", ""} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := l.acquire(ctx, namespace)
			cancel()
			if err != nil {
				t.Fatalf("another namespace waits: %v", err)
			}
			slots = append(slots, s)
		}
		l.release(slots[7], nothing)
		synctest.Wait()
		select {
		case <-late:
			t.Error("the namespace has more than three quarters")
		default:
		}
		l.release(slots[0], nothing)
		slots = append(slots[1:7], <-late)
		for _, s := range slots {
			l.release(s, nothing)
		}
		if l.busy != 0 || len(l.held) != 0 || len(l.waiting) != 0 || len(l.order) != 0 {
			t.Errorf("at the end, %d slots are busy: %v", l.busy, l.held)
		}
	})
}

func TestASmallLimitIsForAnyNamespace(t *testing.T) {
	l := newLimiter(InFlight{Start: 2, Min: 2, Max: 2})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.acquire(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
}

// Two tenants with slow requests have all slots. Each namespace without a request gets one slot more:
// the first after a moment, and the next ones at once, until the slow requests end.
func TestSlowRequestsOfSeveralNamespacesLeaveASlotForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(InFlight{Start: 8, Min: 8, Max: 8})
		var slow sync.WaitGroup
		for i := range 20 {
			slow.Go(func() {
				s, err := l.acquire(t.Context(), []string{"a", "b"}[i%2])
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(20 * time.Second)
				l.release(s, nothing)
			})
		}
		synctest.Wait()
		if _, busy, _ := l.load(); busy != 8 {
			t.Fatalf("%d are in flight, want 8", busy)
		}
		began := time.Now()
		var others sync.WaitGroup
		for i := range 10 {
			others.Go(func() {
				for range 2 {
					s, err := l.acquire(t.Context(), fmt.Sprint("other-", i))
					if err != nil {
						t.Error(err)
						return
					}
					if _, busy, _ := l.load(); busy > 16 {
						t.Errorf("%d are in flight, more than twice the limit", busy)
					}
					time.Sleep(100 * time.Millisecond)
					l.release(s, nothing)
				}
			})
		}
		others.Wait()
		if took := time.Since(began); took > stuckAfter+time.Second {
			t.Errorf("two requests each of ten other namespaces took %v", took)
		}
		slow.Wait()
		if l.busy != 0 || len(l.held) != 0 || len(l.waiting) != 0 || len(l.order) != 0 {
			t.Errorf("at the end, %d slots are busy: %v", l.busy, l.held)
		}
	})
}

func TestNothingExceedsAStrictLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(InFlight{Start: 1, Min: 1, Max: 1})
		l.strict = true
		s, err := l.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.acquire(ctx, "b"); err == nil {
			t.Error("another request is in flight")
		}
		l.release(s, nothing)
	})
}

// Webhooks can make the writes of one object as slow as they like. Such a timeout is no sign that the
// server has too much to do, if it answers others quickly.
func TestATimeoutReducesTheLimitOnlyIfNothingIsFast(t *testing.T) {
	for name, c := range map[string]struct {
		other time.Duration // the time of another request; 0 means none
		want  float64
	}{
		"no other request": {0, 8}, "another is fast": {100 * time.Millisecond, 16}, "another is slow": {slowResponse, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(InFlight{Start: 16, Min: 1, Max: 16})
				late, _ := l.acquire(t.Context(), "a")
				if c.other > 0 {
					time.Sleep(time.Second)
					s, _ := l.acquire(t.Context(), "b")
					time.Sleep(c.other)
					l.release(s, succeeded)
				}
				time.Sleep(30 * time.Second)
				l.release(late, unanswered)
				if l.limit != c.want {
					t.Errorf("the limit is %v, want %v", l.limit, c.want)
				}
			})
		})
	}
}
