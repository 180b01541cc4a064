package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/kind"
)

var (
	examples = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Namespaced: true,
		Subresources: []string{"status"}, Verbs: []string{"get", "list", "watch", "patch"}}
	pods  = kind.Info{Version: "v1", Plural: "pods", Namespaced: true, Verbs: []string{"get", "list", "watch"}}
	nodes = kind.Info{Version: "v1", Plural: "nodes", Verbs: []string{"list", "watch", "patch"}}
)

func texts(needs []Need) (lines []string) {
	for _, n := range needs {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s in %q by %s", strings.Join(n.Verbs, ","), n.Info.Plural, n.Subresource, n.In, strings.Join(n.By, ","))))
	}
	return lines
}

func TestNeedsDependOnHandlers(t *testing.T) {
	older := examples
	older.Version = "v1beta1"
	got := texts(Needs([]Use{
		{Info: examples, Look: []string{"index"}, Write: []string{"create", "index"}},
		{Info: older, Look: []string{"look"}},
		{Info: pods, Look: []string{"look"}},
		{Info: nodes, Write: []string{"drain"}},
	}, Framework{Definitions: true, Namespaces: true, Posting: true, PostingIn: "ops"}))
	want := []string{
		`list,watch kopfexamples  in "" by index,create,look`,
		`patch kopfexamples  in "" by create,index`,
		`patch kopfexamples status in "" by create,index`,
		`get kopfexamples  in "" by create,index`,
		`list,watch pods  in "" by look`,
		`list,watch nodes  in "" by drain`,
		`patch nodes  in "" by drain`,
		`list,watch customresourcedefinitions  in "" by the framework`,
		`list,watch namespaces  in "" by the framework`,
		`create events  in "" by the framework`,
		`create events  in "ops" by the framework`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTheFrameworkNeedsOnlyWhatItUses(t *testing.T) {
	if got := texts(Needs([]Use{{Info: pods, Look: []string{"look"}}}, Framework{})); !slices.Equal(got, []string{`list,watch pods  in "" by look`}) {
		t.Errorf("got %q", got)
	}
}
