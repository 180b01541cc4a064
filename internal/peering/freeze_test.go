package peering

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/test/fakeobject"
	"gopf.dev/gopf/kind"
)

func TestFreezingAndResuming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(clusterPlace, "default", nil)
		m := start(t, s, "me", 0)
		client := fakeobject.Client(t, s)
		human := Record{Identity: "human", Priority: 100, Lifetime: 15 * time.Second, LastSeen: time.Now()}
		expect(t, time.Second, "before", map[*running]bool{m: false})
		if err := Freeze(t.Context(), client, "default", []Place{clusterPlace}, human); err != nil {
			t.Fatal(err)
		}
		expect(t, time.Second, "frozen", map[*running]bool{m: true})
		if err := Resume(t.Context(), client, "default", []Place{clusterPlace}, "human"); err != nil {
			t.Fatal(err)
		}
		expect(t, time.Second, "resumed", map[*running]bool{m: false})
		human.LastSeen = time.Now()
		if err := Freeze(t.Context(), client, "default", []Place{clusterPlace}, human); err != nil {
			t.Fatal(err)
		}
		expect(t, 14*time.Second, "frozen", map[*running]bool{m: true})
		expect(t, time.Second, "thawed by itself", map[*running]bool{m: false})
	})
}

func TestFreezingWithoutAPeeringObjectIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		old := namespacedKind
		old.Group = "zalando.org"
		s.create(Place{old, "ns1"}, "default", nil)
		s.create(Place{namespacedKind, "ns3"}, "default", nil)
		s.fail(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/kopf.dev/v1/namespaces/ns4/") {
				return fakeobject.Refuse(req, http.StatusForbidden), nil
			}
			return nil, nil
		})
		client := fakeobject.Client(t, s)
		places := Places([]kind.Info{namespacedKind, old}, []string{"ns1", "ns2", "ns3", "ns4"})
		err := Freeze(t.Context(), client, "default", places, Record{Identity: "human", Lifetime: time.Minute, LastSeen: time.Now()})
		if err == nil {
			t.Fatal("no error")
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "in 'ns4' (kopfpeerings.v1.kopf.dev)") || !strings.Contains(lines[1], "no peering object 'default' in 'ns2'") {
			t.Errorf("got %q", lines)
		}
		var missing *MissingError
		if !errors.As(err, &missing) || cmp.Diff([]Place{{namespacedKind, "ns2"}, {old, "ns2"}}, missing.Places) != "" {
			t.Errorf("got %v", missing)
		}
		for _, p := range []Place{{old, "ns1"}, {namespacedKind, "ns3"}} {
			if s.status(p, "default")["human"] == nil {
				t.Errorf("%v was not frozen", p)
			}
		}
	})
}

func TestFreezingWithoutPlacesOrLifetimeIsAnError(t *testing.T) {
	if err := Resume(t.Context(), nil, "default", nil, "human"); !errors.Is(err, ErrNoPlaces) {
		t.Errorf("got %v", err)
	}
	if err := Freeze(t.Context(), nil, "default", []Place{clusterPlace}, Record{Identity: "human"}); err == nil {
		t.Error("no error")
	}
}
