package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestStartupRunsFirstAndCleanupLast(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.OnStartup("retried", func(_ context.Context, a *gopf.Activity) error {
			diary.add("startup #%d, requests: %d", a.Retry, len(c.Requests()))
			if a.Retry < 2 {
				return gopf.RetryAfter(time.Second, errors.New("not yet"))
			}
			a.Settings.Execution.DefaultBackoff = 5 * time.Second
			return nil
		})
		op.OnCleanup("cleanup", func(ctx context.Context, a *gopf.Activity) error {
			diary.add("cleanup, cancelled: %v, API: %v", ctx.Err() != nil, a.API.RESTConfig().Host != "")
			return nil
		})
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			diary.add("create #%d", ch.Retry)
			if ch.Retry == 0 {
				return errors.New("again after the default backoff")
			}
			<-ctx.Done()
			diary.add("ended: %v", context.Cause(ctx))
			return ctx.Err()
		})
		stop := gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		stop()
		want := []string{
			"startup #0, requests: 0", "startup #1, requests: 0", "startup #2, requests: 0",
			"create #0", "create #1", "ended: the operator is stopping", "cleanup, cancelled: false, API: true",
		}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestCleanupRunsAfterAFailedStartup(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.OnStartup("broken", func(context.Context, *gopf.Activity) error { return gopf.Permanent(errors.New("no disk")) })
		op.OnStartup("fine", func(context.Context, *gopf.Activity) error { diary.add("fine"); return nil })
		op.OnCleanup("cleanup", func(_ context.Context, a *gopf.Activity) error {
			diary.add("cleanup, API: %v", a.API != nil)
			return gopf.Permanent(errors.New("no broom"))
		})
		gopf.For[*Example](op, resource).OnCreate("create", diary.handler("create"))
		err := op.Run(t.Context(), gopf.Cluster(c.RESTConfig()))
		for _, want := range []string{"no disk", "no broom", "activities_test.go:"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want %q in it", err, want)
			}
		}
		if got, want := diary.all(), []string{"fine", "cleanup, API: false"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(c.Requests()); n != 0 {
			t.Errorf("got %d requests, want none", n)
		}
	})
}

func TestAStopDuringStartupIsNotAnError(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		op.OnStartup("endless", func(context.Context, *gopf.Activity) error { return errors.New("never") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(quiet())); err != nil {
			t.Errorf("got the error %v", err)
		}
	})
}

func TestDuplicateActivitiesAreDeclarationErrors(t *testing.T) {
	op := gopf.New()
	nothing := func(context.Context, *gopf.Activity) error { return nil }
	op.OnStartup("a", nothing)
	op.OnCleanup("a", nothing) // the same id, but another activity
	op.OnStartup("a", nothing)
	op.OnStartup("", nothing)
	op.OnProbe("b", nil)
	if declared, ok := errors.AsType[*gopf.DeclarationError](op.Err()); !ok || len(declared.Problems) != 3 {
		t.Errorf("got %v, want three problems", op.Err())
	}
}

func TestCredentialsAreRenewedUntilTheEndOfTheCleanup(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var logins atomic.Int32
		var cleaned error
		op := gopf.New()
		op.OnLogin("login", func(context.Context, *gopf.Activity) (*gopf.Login, error) {
			logins.Add(1)
			config := c.RESTConfig()
			config.BearerToken = fmt.Sprint("token-", logins.Load())
			return &gopf.Login{Config: config, Expires: time.Now().Add(time.Minute)}, nil
		})
		op.OnCleanup("cleanup", func(ctx context.Context, a *gopf.Activity) error {
			time.Sleep(10 * time.Minute)
			client, err := rest.HTTPClientFor(a.API.RESTConfig())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, a.API.RESTConfig().Host+"/api/v1/namespaces/default", nil)
			resp, err := client.Do(req)
			if cleaned = err; err == nil {
				resp.Body.Close()
			}
			return nil
		})
		gopf.For[*Example](op, resource).OnCreate("c", func(context.Context, *gopf.Change[*Example]) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- op.Run(ctx, gopf.Log(quiet())) }()
		settle()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if cleaned != nil {
			t.Errorf("the request of the cleanup: %v", cleaned)
		}
		if n := logins.Load(); n < 10 {
			t.Errorf("%d logins, want one a minute until the end", n)
		}
	})
}

func TestLoginHandlersHaveNoAPI(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.OnLogin("login", func(_ context.Context, a *gopf.Activity) (*gopf.Login, error) {
			diary.add("API: %v", a.API != nil)
			return &gopf.Login{Config: c.RESTConfig(), Expires: time.Now().Add(time.Minute)}, nil
		})
		gopf.For[*Example](op, resource).OnCreate("create", diary.handler("create"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- op.Run(ctx, gopf.Log(quiet())) }()
		time.Sleep(90 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := diary.all(); len(got) < 2 || slices.Contains(got, "API: true") {
			t.Errorf("got %q, want several logins without an API", got)
		}
	})
}
