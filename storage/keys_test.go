package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func TestAnnotationKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	cases := map[string]struct {
		prefix, id string
		marked, v1 bool
		want       []string
	}{
		"short":                   {prefix: "kopf.zalando.org", id: "create_fn", v1: true, want: []string{"kopf.zalando.org/create_fn"}},
		"signs are replaced":      {prefix: "kopf.zalando.org", id: "a/<b>/c", v1: true, want: []string{"kopf.zalando.org/a._b_.c"}},
		"letters are not bytes":   {prefix: "kopf.zalando.org", id: strings.Repeat("ж", 63), want: []string{"kopf.zalando.org/" + strings.Repeat("ж", 63)}},
		"long, only current form": {prefix: "kopf.zalando.org", id: long, want: []string{"kopf.zalando.org/" + strings.Repeat("x", 56) + "-SItAqA"}},
		"long, both forms": {prefix: "kopf.zalando.org", id: long, v1: true, want: []string{
			"kopf.zalando.org/" + strings.Repeat("x", 56) + "-SItAqA",
			"kopf.zalando.org/" + strings.Repeat("x", 39) + "-SItAqA",
		}},
		"mark": {prefix: "kopf.zalando.org", id: "create_fn", marked: true, v1: true, want: []string{"kopf.zalando.org/create_fn-ofDRS"}},
		"prefix that leaves too little room": {prefix: strings.Repeat("p", 56), id: "create_fn", v1: true, want: []string{
			strings.Repeat("p", 56) + "/create_fn",
			strings.Repeat("p", 56) + "/create_f-AZjFuA",
		}},
		"prefix that leaves no room": {prefix: strings.Repeat("p", 70), id: "create_fn", v1: true, want: []string{
			strings.Repeat("p", 70) + "/create_fn",
			strings.Repeat("p", 70) + "/-AZjFuA",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := storage.Keys(tc.prefix, tc.id, tc.marked, tc.v1)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Keys: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestOnlyReplicaSetsOfDeploymentsAreMarked(t *testing.T) {
	t.Parallel()
	owners := func(kinds ...string) map[string]any {
		var list []any
		for _, kind := range kinds {
			list = append(list, map[string]any{"kind": kind})
		}
		return map[string]any{"ownerReferences": list}
	}
	cases := map[string]struct {
		body storagetest.Body
		want bool
	}{
		"of a Deployment":         {body: storagetest.Body{"kind": "ReplicaSet", "metadata": owners("Deployment")}, want: true},
		"of several":              {body: storagetest.Body{"kind": "ReplicaSet", "metadata": owners("Rollout", "Deployment")}, want: true},
		"of something else":       {body: storagetest.Body{"kind": "ReplicaSet", "metadata": owners("Rollout")}},
		"of nobody":               {body: storagetest.Body{"kind": "ReplicaSet"}},
		"another of a Deployment": {body: storagetest.Body{"kind": "Pod", "metadata": owners("Deployment")}},
	}
	for name, tc := range cases {
		if got := storage.Marked(tc.body); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestIDsAreCheckedForAnnotations(t *testing.T) {
	t.Parallel()
	s := storage.DefaultProgress().(storage.IDChecker)
	for id, valid := range map[string]bool{
		"create":                       true,
		"create/sub.1":                 true,
		"outer.<locals>.inner":         true,
		strings.Repeat("x", 100):       true,
		"lambda:/app/main.py:15":       false,
		"with space":                   false,
		"обработчик":                   false,
		"":                             false,
		"-dash":                        false,
		"create/":                      false,
		"<locals>":                     false,
		strings.Repeat("x", 100) + "é": true, // the last character is cut off
	} {
		if err := s.CheckID(id); (err == nil) != valid {
			t.Errorf("CheckID(%q): error %v, want one: %v", id, err, !valid)
		}
	}
}

func TestInvalidPrefixesAreErrors(t *testing.T) {
	t.Parallel()
	badKey := storage.NewAnnotationBase("example.com")
	badKey.Key = "with space"
	for name, tc := range map[string]struct {
		storage any
		valid   bool
	}{
		"default progress":   {storage: storage.DefaultProgress(), valid: true},
		"default base":       {storage: storage.DefaultBase(), valid: true},
		"empty in progress":  {storage: storage.NewAnnotationProgress("")},
		"empty in base":      {storage: storage.NewAnnotationBase("")},
		"with a slash":       {storage: storage.NewAnnotationProgress("example.com/x")},
		"impossible key":     {storage: badKey},
		"inside of several":  {storage: storage.MultiProgress(storage.NewStatusProgress("x"), storage.NewAnnotationProgress(""))},
		"inside of bases":    {storage: storage.MultiBase(storage.NewStatusBase("x"), storage.NewAnnotationBase(""))},
		"inside of retired":  {storage: storage.RetiredProgress(storage.NewAnnotationProgress(""))},
		"several without it": {storage: storage.MultiBase(storage.NewStatusBase("x")), valid: true},
	} {
		if err := tc.storage.(storage.Validator).Validate(); (err == nil) != tc.valid {
			t.Errorf("%s: error %v, want one: %v", name, err, !tc.valid)
		}
	}
}
