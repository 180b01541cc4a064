package observe

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

func TestAGroupThatIsOutOfOrderDoesNotHideWhatWasKnownOfIt(t *testing.T) {
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
		t.Errorf("got %q, want apples, dogs and bees; cows are really gone", got)
	}
}
