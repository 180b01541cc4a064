package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// TestOperatorsWorkOnOlderServers runs the same scenario on every supported version, and
// on servers with features switched off.
func TestOperatorsWorkOnOlderServers(t *testing.T) {
	servers := map[string]func(*gopftest.Cluster){
		"bare": func(c *gopftest.Cluster) {
			c.Without(gopftest.WatchList, gopftest.Discovery, gopftest.BetaDiscovery, gopftest.SelfSubjectReviews)
		},
	}
	for minor := 28; minor <= 37; minor++ {
		servers[fmt.Sprint("1.", minor)] = func(c *gopftest.Cluster) { c.PlayVersion(minor) }
	}
	for name, play := range servers {
		t.Run(name, func(t *testing.T) {
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
