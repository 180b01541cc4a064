package kube

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

func TestTheGateIsCalledBeforeEveryAttemptOfAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := errors.New("not the leader")
		opened := time.Now().Add(1500 * time.Millisecond)
		f := answers(refusal(503, ""))
		client, _ := f.client(t, func(o *Options) {
			o.Gate = func() (time.Time, error) {
				if time.Now().After(opened) {
					return time.Time{}, closed
				}
				return time.Time{}, nil
			}
		})
		err := patchIt(t.Context(), client)
		if _, gated := errors.AsType[*GatedError](err); !gated || !errors.Is(err, closed) {
			t.Errorf("got %v", err)
		}
		if got := strings.Join(f.times(), " "); got != "0s 1s" {
			t.Errorf("attempts at %s", got)
		}
		f.script = []scripted{ok(onePod)}
		if err := get(t.Context(), client); err != nil {
			t.Errorf("reading: got %v", err)
		}
		if err := patchIt(t.Context(), client.Ungated()); err != nil {
			t.Errorf("ungated: got %v", err)
		}
		if err := patchIt(t.Context(), client); !errors.Is(err, closed) {
			t.Errorf("the gated one: got %v", err)
		}
		if err := client.Delete(t.Context(), podA, DeleteOptions{UID: "1"}); !errors.Is(err, closed) {
			t.Errorf("delete: got %v", err)
		}
		if _, err := client.Create(t.Context(), Target{Info: pods, Namespace: "ns"}, []byte("{}")); !errors.Is(err, closed) {
			t.Errorf("create: got %v", err)
		}
		if err := client.MayWrite(); !errors.Is(err, closed) {
			t.Errorf("the question: got %v", err)
		}
		if err := client.Ungated().MayWrite(); err != nil {
			t.Errorf("the ungated question: got %v", err)
		}
		if len(f.requests) != 4 {
			t.Errorf("requests: got %q", f.requests)
		}
	})
}

func TestAWriteMayTakeUntilTheGateCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(10 * time.Second)
		client, _ := answers(never).client(t, func(o *Options) {
			o.Gate = func() (time.Time, error) { return until, nil }
		})
		err := patchIt(t.Context(), client)
		_, unknown := errors.AsType[*UnknownOutcomeError](err)
		_, gated := errors.AsType[*GatedError](err)
		if !unknown || !gated || !time.Now().Equal(until) {
			t.Errorf("got %v, %v after the end", err, time.Since(until))
		}
		err = patchIt(t.Context(), client) // the gate returns no error, but its time has passed
		if _, unknown := errors.AsType[*UnknownOutcomeError](err); unknown {
			t.Errorf("after the end: got %v", err)
		}
		if _, gated := errors.AsType[*GatedError](err); !gated {
			t.Errorf("after the end: got %v", err)
		}
	})
}

func TestWritesWaitForTheirSlotBeforeTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Bool
		f := answers(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return ok(onePod)(req)
		})
		client, _ := f.client(t, func(o *Options) {
			o.InFlight = InFlight{Start: 1, Min: 1, Max: 1}
			o.Gate = func() (time.Time, error) {
				if closed.Load() {
					return time.Time{}, errors.New("closed")
				}
				return time.Time{}, nil
			}
		})
		var all sync.WaitGroup
		all.Go(func() {
			if err := get(t.Context(), client); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if err := patchIt(t.Context(), client); err == nil {
				t.Error("the write was sent")
			}
		})
		synctest.Wait()
		closed.Store(true)
		all.Wait()
		if err := get(t.Context(), client); err != nil { // the slot is free again
			t.Error(err)
		}
	})
}

func TestTheGateAppliesToUsersClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := answers(ok("{}"))
		var gate atomic.Pointer[func() (time.Time, error)]
		client, _ := f.client(t, func(o *Options) {
			o.Gate = func() (time.Time, error) { return (*gate.Load())() }
		})
		theirs, err := rest.HTTPClientFor(client.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		post := func() error {
			resp, err := theirs.Post("https://server/base/api/v1/pods", "application/json", strings.NewReader("{}"))
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		no := func() (time.Time, error) { return time.Time{}, errors.New("no") }
		gate.Store(&no)
		if _, gated := errors.AsType[*GatedError](post()); !gated {
			t.Error("the write was sent")
		}
		if _, err := theirs.Get("https://server/base/api/v1/pods"); err != nil {
			t.Error(err)
		}
		yes := func() (time.Time, error) { return time.Now().Add(time.Second), nil }
		gate.Store(&yes)
		if err := post(); err != nil {
			t.Error(err)
		}
		f.script = []scripted{never}
		started := time.Now()
		err = post()
		_, unknown := errors.AsType[*UnknownOutcomeError](err)
		if _, gated := errors.AsType[*GatedError](err); !gated || !unknown || time.Since(started) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(started))
		}
	})
}

func TestTheGateMayChangeAtAnyTime(t *testing.T) {
	// This test is for the race detector.
	var open atomic.Bool
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(onePod))
	})
	o := DefaultOptions()
	o.Gate = func() (time.Time, error) {
		if !open.Load() {
			return time.Time{}, errors.New("closed")
		}
		return time.Now().Add(time.Minute), nil
	}
	client, err := NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if err := patchIt(t.Context(), client); err != nil {
					if _, gated := errors.AsType[*GatedError](err); !gated {
						t.Error(err)
					}
				}
				if err := patchIt(t.Context(), client.Ungated()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 100 {
		open.Store(i%2 == 0)
		time.Sleep(time.Millisecond)
	}
	all.Wait()
}
