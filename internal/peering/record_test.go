package peering

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/kind"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 981948000, time.UTC)

func TestRecordsAreReadInAllForms(t *testing.T) {
	for text, want := range map[string]Record{
		`{}`: {Lifetime: time.Minute, LastSeen: noon},
		`{"priority":null,"lifetime":null,"lastseen":null,"more":{}}`:    {Lifetime: time.Minute, LastSeen: noon},
		`{"priority":-7,"lifetime":12,"lastseen":"2026-11-15T11:59Z"}`:   {Priority: -7, Lifetime: 12 * time.Second, LastSeen: noon.Truncate(time.Hour).Add(-time.Minute)},
		`{"priority":"7","lifetime":" 12 "}`:                             {Priority: 7, Lifetime: 12 * time.Second, LastSeen: noon},
		`{"priority":7.9,"lifetime":12.9}`:                               {Priority: 7, Lifetime: 12 * time.Second, LastSeen: noon},
		`{"lifetime":9e17}`:                                              {Lifetime: time.Duration(maxSeconds) * time.Second, LastSeen: noon},
		`{"lifetime":-9e17,"lastseen":"2026-11-15 13:00:00.9819+01:00"}`: {Lifetime: -time.Duration(maxSeconds) * time.Second, LastSeen: noon.Add(-48 * time.Microsecond)},
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		got, unreadable := Parse(map[string]any{"": value}, noon)
		if d := cmp.Diff([]Record{want}, got); d != "" || unreadable != nil {
			t.Errorf("%s: -want +got\n%s%v", text, d, unreadable)
		}
	}
}

func TestInvalidRecordsAreReported(t *testing.T) {
	for problem, value := range map[string]any{
		"must be an object":             "text",
		"not <nil>":                     nil,
		"not []":                        []any{},
		"priority: ":                    map[string]any{"priority": "high"},
		"\"\" is not an integer":        map[string]any{"priority": ""},
		"true is not an integer":        map[string]any{"priority": true},
		"lifetime: ":                    map[string]any{"lifetime": map[string]any{}},
		"is out of range":               map[string]any{"lifetime": math.Inf(1)},
		"NaN":                           map[string]any{"priority": math.NaN()},
		"\"yesterday\" is not":          map[string]any{"lastseen": "yesterday"},
		"must be a string, not float64": map[string]any{"lastseen": 12.5},
		"lastseen: \"":                  map[string]any{"lastseen": "2026-13-13T00:00:00Z"},
	} {
		records, unreadable := Parse(map[string]any{"a": map[string]any{}, "b": value}, noon)
		if err := unreadable["b"]; len(records) != 1 || err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v: got %v, %v, want %q", value, records, unreadable, problem)
		}
	}
}

// Written records are read back unchanged.
func TestRecordsSurviveARoundTrip(t *testing.T) {
	for _, r := range []Record{
		{Identity: "a", Priority: math.MinInt32, Lifetime: time.Second, LastSeen: noon},
		{Identity: "b", Priority: 100, Lifetime: 100 * 24 * time.Hour, LastSeen: noon.Truncate(time.Second)},
	} {
		raw, err := json.Marshal(map[string]any{r.Identity: r.Value()})
		if err != nil {
			t.Fatal(err)
		}
		var status map[string]any
		if err := json.Unmarshal(raw, &status); err != nil {
			t.Fatal(err)
		}
		got, _ := Parse(status, time.Time{})
		if d := cmp.Diff([]Record{r}, got); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
}

func TestLowerPrioritiesAreNotWaitedFor(t *testing.T) {
	status := map[string]any{
		"me":   map[string]any{"priority": 1000, "lastseen": formatTime(noon)},
		"low":  map[string]any{"priority": 4, "lifetime": 1, "lastseen": formatTime(noon)},
		"same": map[string]any{"priority": 5, "lifetime": 20, "lastseen": formatTime(noon)},
		"high": map[string]any{"priority": 6, "lifetime": 30, "lastseen": formatTime(noon)},
	}
	names := func(rs []Record) (ids []string) {
		for _, r := range rs {
			ids = append(ids, r.Identity)
		}
		return ids
	}
	for _, c := range []struct {
		after      time.Duration
		high, same bool
		dead       []string
		again      time.Duration
	}{
		{0, true, true, nil, 20 * time.Second},
		{20 * time.Second, true, false, []string{"low", "same"}, 30 * time.Second},
		{30 * time.Second, false, false, []string{"high", "low", "same"}, 0},
	} {
		d := Decide(noon.Add(c.after), "me", 5, status)
		again := time.Time{}
		if c.again > 0 {
			again = noon.Add(c.again)
		}
		if slices.Equal(names(d.Higher), []string{"high"}) != c.high || slices.Equal(names(d.Same), []string{"same"}) != c.same ||
			!slices.Equal(d.Dead, c.dead) || !d.Again.Equal(again) || d.Absent || d.Pause() != (c.high || c.same) {
			t.Errorf("after %v: got %+v", c.after, d)
		}
	}
	if d := Decide(noon, "me", 5, nil); !d.Absent || d.Pause() || !d.Again.IsZero() {
		t.Errorf("nothing: got %+v", d)
	}
}

func TestPeeringResourcesOfBothGroups(t *testing.T) {
	old, foreign, beta := namespacedKind, namespacedKind, namespacedKind
	old.Group, foreign.Group, beta.Version = "zalando.org", "example.com", "v1beta1"
	all := []kind.Info{beta, foreign, old, clusterKind, namespacedKind}
	if d := cmp.Diff([]kind.Info{namespacedKind, old}, Resources(all, false)); d != "" {
		t.Errorf("namespaced: -want +got\n%s", d)
	}
	if d := cmp.Diff([]kind.Info{clusterKind}, Resources(all, true)); d != "" {
		t.Errorf("cluster-wide: -want +got\n%s", d)
	}
	want := []Place{{namespacedKind, "a"}, {namespacedKind, "b"}, {clusterKind, ""}}
	if d := cmp.Diff(want, Places([]kind.Info{namespacedKind, clusterKind}, []string{"a", "b"})); d != "" {
		t.Errorf("places: -want +got\n%s", d)
	}
}

func TestIdentities(t *testing.T) {
	for _, c := range []struct {
		env     map[string]string
		account string
		want    string
	}{
		{map[string]string{"POD_ID": "operator-pod-1", "USER": "x"}, "root", `^operator-pod-1$`},
		{map[string]string{"POD_ID": ""}, "root", `^root@vm\.example\.com/20261115120000/[a-fh-z0-9]{3}$`},
		{map[string]string{"USER": "jane"}, "root", `^jane@vm\.example\.com/20261115120000/[a-fh-z0-9]{3}$`},
		{nil, "", `^\d+@vm\.example\.com/`}, // a container without accounts
	} {
		s := System{
			LookupEnv: func(n string) (string, bool) { v, ok := c.env[n]; return v, ok },
			Hostname:  func() (string, error) { return "vm", nil },
			Account: func() (string, error) {
				if c.account == "" {
					return "", errors.New("user: unknown userid 1000")
				}
				return c.account, nil
			},
			Resolve: func(context.Context, string) ([]string, error) {
				return []string{"vm", "vm.example.com", "10.0.0.1"}, nil
			},
		}
		id, person := s.Identity(t.Context(), noon), s.Person(t.Context())
		if !regexp.MustCompile(c.want).MatchString(id) || !strings.HasPrefix(id, person) || person == "" || strings.Contains(person, "/") {
			t.Errorf("%v: got %q and %q", c.env, id, person)
		}
	}
}

func TestThisSystemHasAnIdentity(t *testing.T) {
	t.Setenv("POD_ID", "")
	if id := ThisSystem().Identity(t.Context(), noon); !regexp.MustCompile(`^[^@/]+@[^@/]+/20261115120000/...$`).MatchString(id) {
		t.Errorf("got %q", id)
	}
}
