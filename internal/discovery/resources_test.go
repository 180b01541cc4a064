package discovery

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

func TestAFailingGroupKeepsItsKnownResources(t *testing.T) {
	known := []kind.Info{info("a.dev", "v1", "apples"), info("b.dev", "v1", "bees"), info("c.dev", "v1", "cows")}
	now := Merge(known, kube.Discovery{
		Resources: []kind.Info{info("a.dev", "v1", "apples"), info("d.dev", "v1", "dogs")},
		Failed:    map[schema.GroupVersion]error{{Group: "b.dev", Version: "v1"}: errors.New("503")},
	})
	var got []string
	for _, i := range now {
		got = append(got, i.Plural)
	}
	if len(got) != 3 || got[0] != "apples" || got[1] != "dogs" || got[2] != "bees" {
		t.Errorf("got %q, want apples, dogs and bees; cows no longer exist", got)
	}
}

func TestMissingResourcesAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Resources{}
		known := []kind.Info{info("a.dev", "v1", "apples"), info("b.dev", "v1", "bees")}
		listed := known[:1:1]
		if now := r.keepMissing(known, listed); len(now) != 2 || len(r.missing) != 1 {
			t.Errorf("at once: %v, missing %v", now, r.missing)
		}
		time.Sleep(vanishing - time.Second)
		if now := r.keepMissing(known, listed); len(now) != 2 {
			t.Errorf("later: %v", now)
		}
		if now := r.keepMissing(known, known); len(now) != 2 || len(r.missing) != 0 {
			t.Errorf("served again: %v, missing %v", now, r.missing)
		}
		if now := r.keepMissing(known, listed); len(now) != 2 {
			t.Errorf("missing again: %v", now)
		}
		time.Sleep(vanishing)
		if now := r.keepMissing(known, listed); len(now) != 1 || len(r.missing) != 0 {
			t.Errorf("at the end: %v, missing %v", now, r.missing)
		}
	})
}

func TestAVersionReplacedByAnotherIsGoneAtOnce(t *testing.T) {
	r := &Resources{}
	listed := []kind.Info{info("a.dev", "v2", "apples")}
	if now := r.keepMissing([]kind.Info{info("a.dev", "v1", "apples")}, listed); len(now) != 1 || len(r.missing) != 0 {
		t.Errorf("got %v, missing %v", now, r.missing)
	}
}

func TestFailingGroupsAreDiscoveredWithBackoff(t *testing.T) {
	var got []time.Duration
	for failures := range 7 {
		got = append(got, pause(len(settling), failures)/time.Second)
	}
	if want := []time.Duration{60, 5, 10, 20, 40, 60, 60}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// roots responds to discovery requests.
type roots struct {
	asked  []string
	broken int // how many times the discovery of a group fails
}

func (d *roots) RoundTrip(r *http.Request) (*http.Response, error) {
	d.asked = append(d.asked, r.URL.Path)
	text, code := `{"kind":"APIVersions","versions":[]}`, 200
	switch r.URL.Path {
	case "/apis":
		text = `{"kind":"APIGroupList","groups":[{"name":"a.dev","versions":[{"groupVersion":"a.dev/v1","version":"v1"}]}]}`
	case "/apis/a.dev/v1":
		text = `{"resources":[{"name":"apples","kind":"Apple","verbs":["list"]}]}`
		if d.broken--; d.broken >= 0 {
			code = 400
		}
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func TestWithoutWatchingDiscoveryIsRepeatedOnlyWhileItFails(t *testing.T) {
	for _, c := range []struct{ broken, asked, found int }{{0, 0, 0}, {3, 9, 3}} {
		synctest.Test(t, func(t *testing.T) {
			cluster := &roots{broken: c.broken}
			client, err := kube.NewClient(&rest.Config{Host: "http://cluster", Transport: cluster}, kube.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			r := &Resources{Client: client, Log: slog.New(slog.DiscardHandler), Disabled: true}
			first, err := client.Discover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.Tell(first)
			cluster.asked = nil
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			found := 0
			r.Run(ctx, first.Resources, func([]kind.Info) { found++ })
			if len(cluster.asked) != c.asked || found != c.found {
				t.Errorf("failed %d times: found %d times, requests %q", c.broken, found, cluster.asked)
			}
		})
	}
}
