package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// TestOperatorsWorkOnOlderServers runs the same scenario on every supported version, and
// on servers with features switched off.
func TestOperatorsWorkOnOlderServers(t *testing.T) {
	servers := map[string]func(*gopftest.Cluster){
		"bare": func(c *gopftest.Cluster) {
			c.Without(gopftest.WatchList, gopftest.Discovery, gopftest.BetaDiscovery, gopftest.SelfSubjectReviews, gopftest.MatchConditions)
		},
	}
	for minor := 28; minor <= 37; minor++ {
		servers[fmt.Sprint("1.", minor)] = func(c *gopftest.Cluster) { c.PlayVersion(minor) }
	}
	for name, play := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t, resource)
				play(c)
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.OnCreate("create", diary.handler("create"))
				x.OnUpdate("update", diary.handler("update"))
				x.OnDelete("delete", diary.handler("delete"))
				x.Validate("check", func(context.Context, *gopf.Review[*Example]) error { return nil })
				c.Create(t, example("x", "a"))
				gopftest.Start(t, op, c)
				settle()
				c.CutStreams()
				settle()
				c.Expire()
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
				time.Sleep(time.Minute)
				c.Delete(t, resource, "default", "x")
				c.WaitGone(t, resource, "default", "x")
				settle()
				if got := strings.Join(diary.all(), " "); !strings.Contains(got, "create") || !strings.Contains(got, "update") || !strings.Contains(got, "delete") {
					t.Errorf("called %q", got)
				}
			})
		})
	}
}

func TestOperatorsUseTheFeaturesOfTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		minor     int
		refused   bool // the streamed list is rejected
		documents bool // one discovery document per group version
	}{
		"1.28": {28, true, false}, "1.31": {31, true, false}, "1.33": {33, true, false}, "1.34": {34, false, false}, "1.37": {37, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := gopftest.NewCluster(t, resource)
				cluster.PlayVersion(c.minor)
				op := gopf.New()
				gopf.For[*Example](op, resource).OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return nil })
				gopftest.Start(t, op, cluster)
				time.Sleep(time.Hour)
				refused, documents := 0, 0
				for _, r := range cluster.Requests() {
					if r.Verb == "watch" && r.Code == 422 {
						refused++
					}
					if strings.HasPrefix(r.Path, "/apis/apps/v1") || r.Path == "/api/v1" {
						documents++
					}
				}
				if (refused > 0) != c.refused || refused > 5 {
					t.Errorf("%d streamed lists were rejected", refused)
				}
				if (documents > 0) != c.documents {
					t.Errorf("%d discovery documents were read", documents)
				}
			})
		})
	}
}

// TestOwnWebhooksWorkOnServersWithLessThanAll also counts writes: the operator must not
// fight with a server that drops what it wrote.
func TestOwnWebhooksWorkOnServersWithLessThanAll(t *testing.T) {
	for name, c := range map[string]struct {
		without    []gopftest.Feature
		conditions int // of a webhook
	}{
		"all":                  {nil, 2},
		"no SelfSubjectReview": {[]gopftest.Feature{gopftest.SelfSubjectReviews}, 1},
		"no match conditions":  {[]gopftest.Feature{gopftest.MatchConditions}, 0},
		"neither of the two":   {[]gopftest.Feature{gopftest.SelfSubjectReviews, gopftest.MatchConditions}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := gopftest.NewCluster(t, resource)
				cluster.Without(c.without...)
				op := gopf.New()
				op.Settings.Admission.Managed = "own.example.com"
				x := gopf.For[*Example](op, resource)
				x.OnDelete("delete", func(context.Context, *gopf.Change[*Example]) error { return nil })
				x.Validate("frozen", func(_ context.Context, r *gopf.Review[*Example]) error {
					if r.Operation == admissionv1.Update {
						return errors.New("nothing may change")
					}
					return nil
				})
				gopftest.Start(t, op, cluster)
				settle()
				cluster.Create(t, example("x", "a"))
				time.Sleep(time.Hour)
				const configurations = "validatingwebhookconfigurations"
				made := cluster.Get(t, configurations, "", "own.example.com")
				hooks, _, _ := unstructured.NestedSlice(made.Object, "webhooks")
				conditions, _, _ := unstructured.NestedSlice(hooks[0].(map[string]any), "matchConditions")
				if len(conditions) != c.conditions {
					t.Errorf("the webhook has %d conditions: %v", len(conditions), conditions)
				}
				if writes := cluster.Writes(configurations); len(writes) > 3 {
					t.Errorf("the configuration is written %d times", len(writes))
				}
				// The handler must not block the operator's finalizer, if the operator knows its account.
				finalizers := cluster.Get(t, resource, "default", "x").GetFinalizers()
				if known := !slices.Contains(c.without, gopftest.SelfSubjectReviews); (len(finalizers) > 0) != known {
					t.Errorf("finalizers are %v", finalizers)
				}
				cluster.Delete(t, resource, "default", "x")
				time.Sleep(time.Minute)
				cluster.WaitGone(t, resource, "default", "x")
			})
		})
	}
}
