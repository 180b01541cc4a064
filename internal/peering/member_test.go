package peering

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/test/fakeobject"
)

// running is a member under test.
type running struct {
	*Member
	log  *fakeobject.Log
	stop func() // and waits for it
	told []string
}

func start(t *testing.T, s *server, identity string, priority int, adjust ...func(*Config)) *running {
	t.Helper()
	r := &running{log: &fakeobject.Log{}}
	c := DefaultConfig(fakeobject.Client(t, s), clusterPlace)
	c.Identity, c.Priority, c.Log = identity, priority, slog.New(r.log)
	c.Toggle = func(paused bool, why string) {
		if why == "" {
			t.Error("Toggle got no reason")
		}
		r.told = append(r.told, fmt.Sprint(paused))
	}
	for _, a := range adjust {
		a(&c)
	}
	r.Member = New(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

// expect waits, and compares which members are paused.
func expect(t *testing.T, after time.Duration, what string, want map[*running]bool) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	for r, paused := range want {
		if r.Paused() != paused {
			t.Errorf("%s: %s is paused: %v", what, r.Identity, r.Paused())
		}
	}
}

func record(priority, lifetime int, ago time.Duration) map[string]any {
	return map[string]any{"priority": priority, "lifetime": lifetime, "lastseen": formatTime(time.Now().Add(-ago))}
}

func TestAHigherPriorityTakesOverAndGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		low := start(t, s, "low", 0)
		expect(t, time.Second, "alone", map[*running]bool{low: false})
		high := start(t, s, "high", 10)
		expect(t, time.Second, "both", map[*running]bool{low: true, high: false})
		expect(t, time.Hour, "both, long after", map[*running]bool{low: true, high: false})
		high.stop()
		expect(t, time.Second, "alone again", map[*running]bool{low: false})
		if d := cmp.Diff([]string{"true", "false"}, low.told); d != "" {
			t.Errorf("toggles: -want +got\n%s", d)
		}
		if lines := low.log.Take("INFO"); len(lines) != 2 || !strings.HasPrefix(lines[0], "INFO Pausing operations in favour of [<Peer high: priority=10, lifetime=60, lastseen='") ||
			!strings.HasPrefix(lines[1], "INFO Resuming operations after the pause.") {
			t.Errorf("got %q", lines)
		}
		low.stop()
		if left := s.status(clusterPlace, "default"); len(left) != 0 {
			t.Errorf("records remain: %v", left)
		}
	})
}

func TestEqualPrioritiesAllPauseAndLogTheRemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		a, b := start(t, s, "a", 5), start(t, s, "b", 5)
		expect(t, time.Second, "both", map[*running]bool{a: true, b: true})
		expect(t, 10*time.Minute, "both, long after", map[*running]bool{a: true, b: true})
		lines := a.log.Take("WARN")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "WARN Possibly conflicting operators with the same priority: [<Peer b: priority=5,") ||
			!strings.Contains(lines[0], "--priority") || !strings.HasPrefix(lines[1], "WARN Pausing all operators, including self: [<Peer b:") {
			t.Errorf("got %q", lines)
		}
		b.stop()
		expect(t, time.Second, "one left", map[*running]bool{a: false})
	})
}

// A dead operator writes nothing, so no event reports its death.
func TestAnExpiredPeerIsDetectedWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", map[string]any{"ghost": record(100, 20, 0)})
		m := start(t, s, "me", 0)
		expect(t, 19*time.Second, "it may live", map[*running]bool{m: true})
		expect(t, time.Second, "it is dead", map[*running]bool{m: false})
		expect(t, time.Second, "cleaned", nil)
		if _, there := s.status(clusterPlace, "default")["ghost"]; there {
			t.Error("the dead record was not removed")
		}
	})
}

func TestOneOfManyRemovesExpiredRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", map[string]any{"dead1": record(100, 10, time.Minute), "dead2": record(0, 10, time.Minute)})
		var all []*running
		for i := range 5 {
			all = append(all, start(t, s, fmt.Sprint("op", i), i))
		}
		expect(t, 10*time.Second, "settled", map[*running]bool{all[4]: false, all[0]: true})
		removals := slices.DeleteFunc(s.sent(), func(r string) bool { return !strings.Contains(r, `"dead1":null`) })
		if len(removals) == 0 || len(removals) > 5 {
			t.Errorf("got %d removals", len(removals))
		}
		status := s.status(clusterPlace, "default")
		if len(status) != 5 || status["dead1"] != nil {
			t.Errorf("got %v", status)
		}
		time.Sleep(time.Hour)
		for _, r := range s.sent() {
			if strings.Contains(r, ":null") {
				t.Errorf("removed again: %s", r)
			}
		}
	})
}

// The owner of the record returns between the decision and the removal.
func TestAReturningPeerKeepsItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", map[string]any{"late": record(100, 10, time.Minute)})
		s.fail(func(req *http.Request) (*http.Response, error) {
			body, _ := req.GetBody()
			text := make([]byte, 1000)
			n, _ := body.Read(text)
			if strings.Contains(string(text[:n]), `"late":null`) {
				s.merge(t, clusterPlace, "default", `{"status":{"late":{"lastseen":%q}}}`, formatTime(time.Now()))
			}
			return nil, nil
		})
		m := start(t, s, "me", 0)
		expect(t, 5*time.Second, "it is back", map[*running]bool{m: true})
		if s.status(clusterPlace, "default")["late"] == nil {
			t.Error("the record was removed")
		}
	})
}

func TestOnlyKeepAlivesAreWrittenWhenNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		s.create(clusterPlace, "other", map[string]any{"x": record(100, 3600, 0), "dead": record(100, 1, time.Hour)})
		m := start(t, s, "me", 0)
		low := start(t, s, "low", -1)
		expect(t, time.Hour, "in the end", map[*running]bool{m: false, low: true})
		for _, id := range []string{"me", "low"} {
			n := 0
			for _, r := range s.requests {
				if strings.Contains(r, fmt.Sprintf(`{"status":{"%s":{"lastseen":`, id)) {
					n++
				}
			}
			if n < 3600/55 || n > 3600/50+1 {
				t.Errorf("%s has renewed its record %d times", id, n)
			}
		}
		if n := len(s.requests); n > 2*(3600/50+1) {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAMandatoryMemberWaitsForThePeeringObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		mandatory := func(c *Config) { c.Mandatory = true }
		m := start(t, s, "me", 0, mandatory)
		if !m.Paused() {
			t.Error("it does not start paused")
		}
		expect(t, 10*time.Minute, "no object", map[*running]bool{m: true})
		if lines := m.log.Take("INFO"); len(lines) != 1 || !strings.Contains(lines[0], "Waiting for the peering object") {
			t.Errorf("got %q", lines)
		}
		s.create(clusterPlace, "default", map[string]any{"boss": record(1, 30, 0)})
		expect(t, time.Second, "with a conflict", map[*running]bool{m: true})
		if s.status(clusterPlace, "default")["me"] == nil {
			t.Error("our record is not in the new object yet")
		}
		expect(t, 30*time.Second, "without", map[*running]bool{m: false})
		if d := cmp.Diff([]string{"true", "true", "false"}, m.told); d != "" {
			t.Errorf("toggles: -want +got\n%s", d)
		}
	})
}

func TestWithoutAPeeringObjectNoMemberPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		m := start(t, s, "me", 0, func(c *Config) { c.Stealth = true })
		expect(t, 5*time.Minute, "no object", map[*running]bool{m: false})
		lines := m.log.Take("DEBUG Keep-alive")
		if len(lines) < 2 || len(lines) > 4 || lines[0] != "DEBUG Keep-alive in 'default' cluster-wide: not found." {
			t.Errorf("got %q", lines)
		}
		s.create(clusterPlace, "default", nil)
		expect(t, time.Second, "created", map[*running]bool{m: false})
		if s.status(clusterPlace, "default")["me"] == nil {
			t.Error("our record is not in the new object")
		}
		if lines := m.log.Take("DEBUG Keep-alive"); len(lines) != 0 {
			t.Errorf("stealth: got %q", lines)
		}
	})
}

func TestADeletedObjectKeepsItsPeersAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", map[string]any{"boss": record(1, 300, 0)})
		m := start(t, s, "me", 0)
		expect(t, time.Second, "boss", map[*running]bool{m: true})
		s.Delete(path(clusterPlace, "default"))
		expect(t, 290*time.Second, "the boss may live", map[*running]bool{m: true})
		expect(t, 10*time.Second, "the boss must be dead", map[*running]bool{m: false})
		if lines := m.log.Take("WARN"); len(lines) != 1 || !strings.Contains(lines[0], "is gone") {
			t.Errorf("got %q", lines)
		}
		s.create(clusterPlace, "default", nil)
		expect(t, time.Second, "again", map[*running]bool{m: false})
		if s.status(clusterPlace, "default")["me"] == nil {
			t.Error("our record is not in the new object")
		}
	})
}

func TestErrorsAreLoggedOnceAndRetriedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		m := start(t, s, "me", 0)
		time.Sleep(40 * time.Second)
		s.fail(func(req *http.Request) (*http.Response, error) {
			return fakeobject.Refuse(req, http.StatusForbidden), nil
		})
		time.Sleep(10 * time.Minute)
		s.fail(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET })
		time.Sleep(10 * time.Minute)
		if lines := m.log.Take("WARN"); len(lines) != 2 {
			t.Errorf("got %q", lines)
		}
		s.fail(nil)
		expect(t, 11*time.Second, "renewed", map[*running]bool{m: false})
		own, _ := Parse(s.status(clusterPlace, "default"), time.Now())
		if len(own) != 1 || own[0].Dead(time.Now()) {
			t.Errorf("got %v", own)
		}
	})
}

// A short failure at the wrong time must not make us look dead to the others.
func TestAFailedRenewalIsRetriedBeforeTheLifetimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		low := start(t, s, "low", 0)
		high := start(t, s, "high", 10)
		time.Sleep(time.Second)
		s.fail(func(req *http.Request) (*http.Response, error) {
			if time.Since(s.Started) > 50*time.Second && time.Since(s.Started) < 56*time.Second {
				return nil, errors.New("connection reset")
			}
			return nil, nil
		})
		for range 600 {
			expect(t, time.Second, "all the time", map[*running]bool{low: true, high: false})
		}
	})
}

func TestARecordRemovedByOthersIsRestoredAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		m := start(t, s, "me", 0)
		time.Sleep(10 * time.Second)
		s.merge(t, clusterPlace, "default", `{"status":{"me":null}}`)
		expect(t, time.Second, "put back", map[*running]bool{m: false})
		if s.status(clusterPlace, "default")["me"] == nil {
			t.Error("the record was not written again")
		}
		// An operator whose clock is ahead removes it each time.
		s.sent()
		for range 60 {
			if s.status(clusterPlace, "default")["me"] != nil {
				s.merge(t, clusterPlace, "default", `{"status":{"me":null}}`)
			}
			time.Sleep(time.Second)
		}
		if n := len(s.sent()); n < 8 || n > 13 {
			t.Errorf("it was written %d times in a minute", n)
		}
	})
}

func TestInvalidRecordsAreLoggedOnceAndIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", map[string]any{"text": "hello", "list": []any{1}, "odd": map[string]any{"lastseen": "yesterday"}, "null": nil,
			"boss": record(1, 30, 0)})
		m := start(t, s, "me", 0)
		expect(t, time.Second, "boss", map[*running]bool{m: true})
		expect(t, 10*time.Minute, "no boss", map[*running]bool{m: false})
		lines := m.log.Take("WARN")
		if len(lines) != 4 {
			t.Errorf("got %q", lines)
		}
		if left := s.status(clusterPlace, "default"); left["text"] != "hello" || left["list"] == nil {
			t.Errorf("invalid records of others were removed: %v", left)
		}
	})
}

func TestAStatusThatIsNotAnObjectIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		s.merge(t, clusterPlace, "default", `{"status":["what"]}`)
		m := start(t, s, "me", 0)
		expect(t, time.Second, "nobody", map[*running]bool{m: false})
	})
}

func TestTheStatusSubresourceIsUsedIfItExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		place := Place{Info: namespacedKind, Namespace: "ns1"}
		place.Info.Subresources = []string{"status"}
		s.create(place, "team", nil)
		m := start(t, s, "me", 0, func(c *Config) {
			d := DefaultConfig(c.Client, place)
			c.Place, c.Stream, c.Name, c.Lifetime = d.Place, d.Stream, "team", 1500*time.Millisecond
		})
		expect(t, 500*time.Millisecond, "", nil)
		m.stop()
		want := []string{
			`0s PATCH /apis/kopf.dev/v1/namespaces/ns1/kopfpeerings/team/status {"status":{"me":{"lastseen":"2000-01-01T00:00:00+00:00","lifetime":2,"priority":0}}}`,
			`0s PATCH /apis/kopf.dev/v1/namespaces/ns1/kopfpeerings/team/status {"status":{"me":null}}`,
		}
		if d := cmp.Diff(want, s.sent()); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		if lines := m.log.Take("DEBUG Keep-alive"); !slices.Equal(lines, []string{"DEBUG Keep-alive in 'team' in 'ns1': ok."}) {
			t.Errorf("got %q", lines)
		}
	})
}

func TestStoppingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		m := start(t, s, "me", 0)
		time.Sleep(time.Second)
		s.fail(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		began := time.Now()
		m.stop()
		if took := time.Since(began); took != removeLimit {
			t.Errorf("it took %v", took)
		}
		if lines := m.log.Take("WARN"); len(lines) != 1 || !strings.Contains(lines[0], "stays in the peering object") {
			t.Errorf("got %q", lines)
		}
	})
}

// A renewal in flight when the member stops must not arrive after the removal.
func TestStoppingWaitsForARenewalInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		s.fail(func(*http.Request) (*http.Response, error) { time.Sleep(2 * time.Second); return nil, nil })
		m := start(t, s, "me", 0)
		time.Sleep(time.Second)
		m.stop()
		if left := s.status(clusterPlace, "default"); len(left) != 0 {
			t.Errorf("records remain: %v", left)
		}
	})
}

func TestWithoutALifetimeNoRecordIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", map[string]any{"boss": record(1, 30, 0)})
		m := start(t, s, "me", 0, func(c *Config) { c.Lifetime = 0 })
		expect(t, time.Second, "boss", map[*running]bool{m: true})
		m.stop()
		if sent := s.sent(); len(sent) != 0 {
			t.Errorf("sent: %q", sent)
		}
	})
}

func TestARecordDroppedByTheServerIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		s.fail(func(req *http.Request) (*http.Response, error) {
			empty, _ := http.NewRequest(http.MethodPatch, req.URL.String(), nil)
			return s.Answer(empty, []byte(`{}`)), nil
		})
		m := start(t, s, "me", 0)
		time.Sleep(10 * time.Minute)
		if lines := m.log.Take("WARN"); len(lines) != 1 || !strings.Contains(lines[0], "x-kubernetes-preserve-unknown-fields") {
			t.Errorf("got %q", lines)
		}
	})
}
