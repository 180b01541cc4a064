package childwatch

import (
	"log/slog"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// watches returns watches that collect the owners they wake.
func watches(s *Store) (w *Watches, woken *[]string) {
	woken = &[]string{}
	return NewWatches(Config{
		Store: s, Log: slog.New(slog.DiscardHandler),
		Wake: func(owner string, of kind.Info, _ string) { *woken = append(*woken, owner+" "+of.Kind) },
	}), woken
}

func event(t *testing.T, kind kube.EventType, version string) stream.Event {
	t.Helper()
	body, err := object.ParseWhole([]byte(`{"metadata": {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "` + version + `",
		"ownerReferences": [{"uid": "o1", "controller": true}]}, "data": {"version": "` + version + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return stream.Event{Type: kind, Body: body}
}

func TestOwnersWakeAfterTheFirstListIsComplete(t *testing.T) {
	for name, test := range map[string]struct {
		listed bool // the first list is complete
		known  bool // the child was known before
		event  kube.EventType
		want   []string
	}{
		"item of the first list":        {false, false, kube.Listed, nil},
		"changed item of a known child": {false, true, kube.Listed, []string{"o1 ConfigMap"}},
		"item of a later list":          {true, false, kube.Listed, []string{"o1 ConfigMap"}},
		"event":                         {true, false, kube.Added, []string{"o1 ConfigMap"}},
		"event during the first list":   {false, false, kube.Added, []string{"o1 ConfigMap"}},
		"deletion of a known child":     {true, true, kube.Deleted, []string{"o1 ConfigMap"}},
		"deletion of an unknown child":  {true, false, kube.Deleted, nil},
	} {
		s := store()
		w, woken := watches(s)
		of := Watch{Info: configs, Namespace: "ns"}
		if test.known {
			w.deliver(of, event(t, kube.Added, "1"))
			*woken = nil
		}
		w.setListed(of.id(), test.listed)
		w.deliver(of, event(t, test.event, "2"))
		if !slices.Equal(*woken, test.want) {
			t.Errorf("%s: got %q, want %q", name, *woken, test.want)
		}
		if known := len(s.Of("o1")) == 1; known != (test.event != kube.Deleted) {
			t.Errorf("%s: the child is known: %t", name, known)
		}
	}
}

func TestChildrenAreCompleteWhenAllWatchesHaveListed(t *testing.T) {
	a, b, everywhere := Watch{Info: configs, Namespace: "a"}, Watch{Info: configs, Namespace: "b"}, Watch{Info: configs}
	secrets := Watch{Info: kind.Info{Version: "v1", Plural: "secrets", Kind: "Secret"}, Namespace: "a"}
	w, _ := watches(store())
	for _, one := range []Watch{a, secrets} {
		if !w.setListed(one.id(), true) || w.setListed(one.id(), true) {
			t.Errorf("%v: only the first list is a change", one.id())
		}
	}
	for name, test := range map[string]struct {
		wanted []Watch
		want   bool
	}{
		"none":             {nil, true},
		"one":              {[]Watch{a}, true},
		"two kinds":        {[]Watch{a, secrets}, true},
		"other namespace":  {[]Watch{a, b}, false},
		"whole cluster":    {[]Watch{everywhere}, false},
		"the missing only": {[]Watch{b}, false},
	} {
		if got := w.Complete(test.wanted); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
	if !w.setListed(a.id(), false) || w.Complete([]Watch{a}) {
		t.Error("an ended watch still counts as listed")
	}
}

func TestEventsOfKnownVersionsAreNotDecoded(t *testing.T) {
	s := store()
	w, woken := watches(s)
	of := Watch{Info: configs, Namespace: "ns"}
	first, again := event(t, kube.Added, "1"), event(t, kube.Modified, "1")
	w.deliver(of, first)
	*woken = nil
	if n := testing.AllocsPerRun(10, func() { w.deliver(of, again) }); n > 3 {
		t.Errorf("an event of a known version makes %.0f allocations", n)
	}
	if len(*woken) > 0 {
		t.Errorf("it wakes %q", *woken)
	}
	restored := again
	restored.Authoritative = true // a list after a restore may have another content of that version
	if n := testing.AllocsPerRun(10, func() { w.deliver(of, restored) }); n < 10 {
		t.Errorf("an authoritative list item makes %.0f allocations: it was not decoded", n)
	}
}
