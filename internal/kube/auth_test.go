package kube

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

func TestRejectedCredentialsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := refusal(401, "Unauthorized")
		f := answers(no, no, no, no, no, no, no, no, ok("{}"), ok(onePod))
		var told []bool
		client, log := f.client(t, func(o *Options) {
			o.Unauthorized = func(_ *rest.Config, err error) { told = append(told, err != nil) }
		})
		if err := patchIt(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		const patch, ask = "PATCH /base/api/v1/namespaces/ns/pods/a", "GET /base/version"
		want := []string{"0s " + patch, "0s " + ask, "250ms " + ask, "750ms " + ask, "1.75s " + ask, "3.75s " + ask, "7.75s " + ask,
			"12.75s " + ask, "17.75s " + ask, "17.75s " + patch}
		if diff := cmp.Diff(want, f.requests); diff != "" {
			t.Errorf("requests: -want +got\n%s", diff)
		}
		if diff := cmp.Diff([]bool{true, false}, told); diff != "" {
			t.Errorf("told: -want +got\n%s", diff)
		}
		if len(log.lines) != 2 {
			t.Errorf("log: got %q, want one line for the start and one for the end", log.lines)
		}
	})
}

func TestA401OfOneRequestDoesNotRejectTheCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 0
		f := answers(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPatch {
				if refusals++; refusals <= 3 {
					return refusal(401, "Unauthorized")(req)
				}
			}
			return ok(onePod)(req)
		})
		client, log := f.client(t, func(o *Options) {
			o.Unauthorized = func(*rest.Config, error) { t.Error("Unauthorized was called") }
		})
		var all sync.WaitGroup
		all.Go(func() {
			if err := patchIt(t.Context(), client); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(600 * time.Millisecond)
		if err := get(t.Context(), client); err != nil {
			t.Error(err)
		}
		all.Wait()
		const patch, ask = "PATCH /base/api/v1/namespaces/ns/pods/a", "GET /base/version"
		want := []string{"0s " + patch, "0s " + ask, "0s " + patch, "250ms " + ask, "250ms " + patch,
			"600ms GET /base/api/v1/namespaces/ns/pods/a", "750ms " + ask, "750ms " + patch}
		if diff := cmp.Diff(want, f.requests); diff != "" {
			t.Errorf("requests: -want +got\n%s", diff)
		}
		if len(log.lines) != 1 {
			t.Errorf("log: got %q", log.lines)
		}
	})
}

func TestAnUnreachableServerEndsTheWaitForCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := refusal(401, "Unauthorized")
		f := answers(no, no, breaks(errDial))
		client, _ := f.client(t, func(o *Options) { o.Backoffs = nil })
		err := patchIt(t.Context(), client)
		if _, ok := errors.AsType[*UnreachableError](err); !ok {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"0s", "0s", "250ms", "250ms"}, f.times()); diff != "" {
			t.Errorf("times: -want +got\n%s", diff)
		}
	})
}

func TestWaitingForCredentialsEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(refusal(401, "Unauthorized")).client(t)
		var all sync.WaitGroup
		for i := range 5 { // one waiting request after another probes the server
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*10*time.Second)
				defer cancel()
				err := get(ctx, client)
				if !errors.Is(err, context.DeadlineExceeded) || !apierrors.IsUnauthorized(err) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
	})
}

func TestRequestsWithShortDeadlinesProbeTheServerToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		f := answers(func(req *http.Request) (*http.Response, error) {
			if time.Since(started) < 20*time.Second {
				return refusal(401, "Unauthorized")(req)
			}
			return ok(onePod)(req)
		})
		client, _ := f.client(t)
		for time.Since(started) < time.Hour {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := get(ctx, client)
			cancel()
			if err == nil {
				break
			}
		}
		if took := time.Since(started); took > 25*time.Second {
			t.Errorf("the server was probed after %v", took)
		}
		if n := len(f.requests); n > 12 {
			t.Errorf("got %d requests: %q", n, f.requests)
		}
	})
}

func TestHeldRequestsWaitForOtherCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := answers(ok(onePod))
		client, _ := f.client(t)
		expired := errors.New("expired")
		client.Hold(expired)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := get(ctx, client); !errors.Is(err, expired) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Minute, func() {
			if err := client.Use(&rest.Config{Host: "https://server", Transport: f}); err != nil {
				t.Error(err)
			}
		})
		if err := get(t.Context(), client); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"2m0s"}, f.times()); diff != "" {
			t.Errorf("times: -want +got\n%s", diff)
		}
	})
}

func TestWatchesEndWhenTheCredentialsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := func(req *http.Request) (*http.Response, error) {
			return respond(req, http.StatusOK, &silent{req}), nil
		}
		client, _ := answers(watch).client(t)
		var opened []*Watch
		for range 3 {
			w, err := client.Watch(t.Context(), pods, "", WatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			opened = append(opened, w)
		}
		opened[0].Close()
		time.AfterFunc(time.Minute, func() {
			if err := client.Use(&rest.Config{Host: "https://server", Transport: answers(watch)}); err != nil {
				t.Error(err)
			}
		})
		for i, want := range []error{ErrClosed, ErrReplaced, ErrReplaced} {
			if _, err := opened[i].Next(); !errors.Is(err, want) {
				t.Errorf("watch %d: got %v", i, err)
			}
			opened[i].Close()
		}
		w, err := client.Watch(t.Context(), pods, "", WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, w.Close)
		if _, err := w.Next(); !errors.Is(err, ErrClosed) {
			t.Errorf("with the new credentials: got %v", err)
		}
		if n := len(client.shared.watches.open); n != 0 {
			t.Errorf("%d watches are still registered", n)
		}
	})
}

func TestAWatchOpenedWhileCredentialsAreReplacedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return respond(req, http.StatusOK, &silent{req}), nil
		}).client(t)
		time.AfterFunc(time.Second/2, func() {
			if err := client.Use(&rest.Config{Host: "https://server", Transport: answers(never)}); err != nil {
				t.Error(err)
			}
		})
		w, err := client.Watch(t.Context(), pods, "", WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.Next(); !errors.Is(err, ErrReplaced) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRejectedCredentialsAreLoggedOnceForAllRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		f := answers(func(req *http.Request) (*http.Response, error) {
			if time.Since(started) < time.Minute {
				return refusal(401, "Unauthorized")(req)
			}
			return ok(onePod)(req)
		})
		client, log := f.client(t)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if err := patchIt(t.Context(), client); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(log.lines) != 2 {
			t.Errorf("log: got %q", log.lines)
		}
	})
}

func TestNewCredentialsAreUsedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(refusal(401, "Unauthorized")).client(t)
		fresh := answers(ok(onePod))
		fresh.started = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			time.Sleep(30 * time.Second)
			if err := client.Use(&rest.Config{Host: "https://server", BearerToken: "new", Transport: fresh}); err != nil {
				t.Error(err)
			}
		}()
		if err := get(ctx, client); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"30s"}, fresh.times()); diff != "" {
			t.Errorf("times: -want +got\n%s", diff)
		}
	})
}
