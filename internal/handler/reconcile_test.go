package handler

import (
	"testing"

	"gopf.dev/gopf/kind"
)

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
