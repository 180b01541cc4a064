package handler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/kind"
)

// The number of children, and their names, may come from the object.
func TestOnlyTheFirstMistakesAreKept(t *testing.T) {
	t.Parallel()
	c := &Children{}
	if err := c.Mistake(); err != nil {
		t.Errorf("without a mistake, got %v", err)
	}
	first := errors.New("mistake 0")
	c.Reject(first)
	for i := range 1_999 {
		c.Reject(fmt.Errorf("mistake %d", i+1))
	}
	lines := strings.Split(c.Mistake().Error(), "\n")
	if !errors.Is(c.Mistake(), first) || len(lines) != 11 || lines[9] != "mistake 9" || lines[10] != "there are 1990 more mistakes" {
		t.Errorf("got %q", lines)
	}
}

func TestAKeyIsClaimedOnce(t *testing.T) {
	t.Parallel()
	c := &Children{}
	a, b := children.Key{Kind: "ConfigMap", Name: "a"}, children.Key{Kind: "ConfigMap", Name: "b"}
	if !c.Claim(a) || !c.Claim(b) || c.Claim(a) {
		t.Error("a key was refused at first, or accepted twice")
	}
}

func TestReconcileHandlersOwnAndWatchResources(t *testing.T) {
	t.Parallel()
	maps := kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap"}
	secrets := kind.Info{Version: "v1", Plural: "secrets", Kind: "Secret"}
	pods := kind.Info{Version: "v1", Plural: "pods", Kind: "Pod"}
	only := func(info kind.Info) kind.Selector {
		return kind.Matching(func(other kind.Info) bool { return other.Plural == info.Plural })
	}
	r := &Reconcile{Owned: []Owned{{Of: only(maps)}, {Of: only(secrets)}, {Of: only(secrets), Anywhere: true}}, Watched: []kind.Selector{only(pods)}}
	for _, test := range []struct {
		info                     kind.Info
		owned, anywhere, watched bool
	}{
		{maps, true, false, false},
		{secrets, true, true, false},
		{pods, false, false, true},
	} {
		owned, anywhere := r.Owns(test.info)
		if watched := r.Watches(test.info); owned != test.owned || anywhere != test.anywhere || watched != test.watched {
			t.Errorf("%s: owned %t, anywhere %t, watched %t", test.info.Kind, owned, anywhere, watched)
		}
	}
}
