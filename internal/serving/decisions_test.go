package serving

import (
	"maps"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/discovery"
)

func TestControllersWatchTheClusterIfTheyMay(t *testing.T) {
	for name, test := range map[string]struct {
		undecided, crowded, allowed, unanswered bool
		everywhere, known                       bool
	}{
		"first decision, allowed":            {undecided: true, crowded: true, allowed: true, everywhere: true, known: true},
		"first decision, forbidden":          {undecided: true, crowded: true, everywhere: false, known: true},
		"first decision, no answer: try it":  {undecided: true, crowded: true, unanswered: true, everywhere: true, known: true},
		"allowed later":                      {crowded: true, allowed: true, everywhere: true, known: true},
		"still forbidden: no change":         {crowded: true, everywhere: true, known: false},
		"later no answer: no change":         {crowded: true, unanswered: true, everywhere: true, known: false},
		"few namespaces by now: no change":   {allowed: true, everywhere: true, known: false},
		"few namespaces, no answer: neither": {unanswered: true, everywhere: true, known: false},
	} {
		everywhere, known := choose(test.undecided, test.crowded, test.allowed, test.unanswered)
		if known != test.known || known && everywhere != test.everywhere {
			t.Errorf("%s: got everywhere %t and known %t, want %t and %t", name, everywhere, known, test.everywhere, test.known)
		}
	}
}

func TestFixedNamespacesAreServedFromTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		selected discovery.Namespaces
		want     []string
	}{
		"whole cluster": {nil, []string{""}},
		"plain names":   {discovery.Namespaces{discovery.Globs("a"), discovery.Globs("b")}, []string{"a", "b"}},
		"patterns":      {discovery.Namespaces{discovery.Globs("a*")}, nil},
		"mixed":         {discovery.Namespaces{discovery.Globs("a"), discovery.Globs("b*")}, nil},
	} {
		got := slices.Sorted(maps.Keys(firstNamespaces(test.selected)))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestBarrierIsClosedOnlyWithIndices(t *testing.T) {
	patterns := discovery.Namespaces{discovery.Globs("a*")}
	for name, test := range map[string]struct {
		indexed    bool
		namespaces discovery.Namespaces
		synced     []string // the sources that open it
	}{
		"no indices":                {false, patterns, nil},
		"indices":                   {true, nil, []string{resources}},
		"indices and patterns":      {true, patterns, []string{resources, "the namespaces of the cluster"}},
		"indices and plain names":   {true, discovery.Namespaces{discovery.Globs("a")}, []string{resources}},
		"no indices, whole cluster": {false, nil, nil},
	} {
		barrier := NewBarrier(test.indexed, test.namespaces)
		for _, source := range test.synced {
			select {
			case <-barrier.Open():
				t.Errorf("%s: it is open before %q", name, source)
			default:
			}
			barrier.Synced(source)
		}
		select {
		case <-barrier.Open():
		default:
			t.Errorf("%s: it is closed after %q", name, test.synced)
		}
	}
}
