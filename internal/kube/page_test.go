package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestPagesAreReadOneByOneAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := page("9", "more", "a", "b")
		f := answers(cutShort(first[:len(first)-30]), ok(first), ok(page("9", "", "c")))
		client, _ := f.client(t)
		o := ListOptions{Selector: "app=x", Fields: "metadata.name!=z", Limit: 2}
		var got []string
		for next, more := "", true; more; more = next != "" {
			items, following, err := client.Page(t.Context(), pods, "ns", o, next)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range items {
				got = append(got, b.Kind+" "+b.Name)
			}
			next = following
		}
		if diff := cmp.Diff([]string{"Pod a", "Pod b", "Pod c"}, got); diff != "" {
			t.Errorf("objects: -want +got\n%s", diff)
		}
		const query = "fieldSelector=metadata.name%21%3Dz&labelSelector=app%3Dx&limit=2"
		for i, want := range []string{"?" + query, "?" + query, "?continue=more&" + query} {
			if _, path, _ := strings.Cut(f.requests[i], "GET "); path != "/base/api/v1/namespaces/ns/pods"+want {
				t.Errorf("request #%d: got %s", i, path)
			}
		}
	})
}

// Clients of the cluster choose how large objects are.
func TestAPageOfLargeObjectsIsRequestedAgainWithFewer(t *testing.T) {
	large := func(next string, names ...string) string {
		return strings.ReplaceAll(page("9", next, names...), `"metadata":{"name"`, `"data":"`+strings.Repeat("x", LargePage/3)+`","metadata":{"name"`)
	}
	if text := large("", "a"); len(text) < LargePage/3 {
		t.Fatalf("the item is not large: %.100s", text)
	}
	f := answers(ok(large("", "a", "b", "c", "d", "e")), ok(large("more", "a", "b")), ok(large("", "c", "d")))
	client, _ := f.client(t)
	items, next, err := client.Page(t.Context(), pods, "ns", ListOptions{}, "")
	if err != nil || len(items) != 2 || next != "more" {
		t.Fatalf("got %d objects, next %q, %v", len(items), next, err)
	}
	for i, want := range []string{"limit=500", "limit=2"} {
		if !strings.HasSuffix(f.requests[i], want) {
			t.Errorf("request #%d: got %s", i, f.requests[i])
		}
	}
	f = answers(ok(strings.ReplaceAll(large("", "a"), "xxxx", "xxxxxxxxxxxxxxxx")))
	client, _ = f.client(t)
	if items, _, err := client.Page(t.Context(), pods, "ns", ListOptions{}, ""); err != nil || len(items) != 1 {
		t.Errorf("one object that is larger than a page: got %d objects, %v", len(items), err)
	}
	f = answers(ok(large("", "a", "b", "c", "d")), ok(large("", "a", "b", "c", "d"))) // a server that ignores the limit
	client, _ = f.client(t)
	if items, _, err := client.Page(t.Context(), pods, "ns", ListOptions{}, ""); err != nil || len(items) != 4 || len(f.requests) != 2 {
		t.Errorf("without limits of the server: got %d objects in %d requests, %v", len(items), len(f.requests), err)
	}
}

// The page is requested again after it was too large. That request can fail.
func TestAPageOfLargeObjectsMayFailWhenItIsRequestedAgain(t *testing.T) {
	large := strings.ReplaceAll(page("9", "", "a", "b", "c", "d", "e"), `"metadata":{"name"`, `"data":"`+strings.Repeat("x", LargePage/3)+`","metadata":{"name"`)
	f := answers(ok(large), reply(403, `{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden"}`))
	client, _ := f.client(t)
	if items, _, err := client.Page(t.Context(), pods, "ns", ListOptions{}, ""); !apierrors.IsForbidden(err) || len(items) != 0 || len(f.requests) != 2 {
		t.Errorf("got %d objects in %d requests, %v", len(items), len(f.requests), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f = answers(ok(large), func(*http.Request) (*http.Response, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	client, _ = f.client(t)
	if _, _, err := client.Page(ctx, pods, "ns", ListOptions{}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}

func TestAnExpiredPageReturnsAContinueToken(t *testing.T) {
	f := answers(reply(410, `{"kind":"Status","status":"Failure","code":410,"reason":"Expired","metadata":{"continue":"later"}}`))
	client, _ := f.client(t)
	_, _, err := client.Page(t.Context(), pods, "ns", ListOptions{}, "old")
	status, _ := Refused(err)
	if !apierrors.IsResourceExpired(err) || status.Continue != "later" {
		t.Errorf("got %v, continue %q", err, status.Continue)
	}
}
