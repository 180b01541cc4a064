package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const peerings = "kopf.dev/v1/clusterkopfpeerings"

// meet creates a peering in the cluster.
func meet(t *testing.T, c *gopftest.Cluster) {
	t.Helper()
	c.Define(t, gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering"})
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": map[string]any{"name": "default"},
	}})
}

// peer is an operator that records its handler calls.
func peer(diary *calls, name string, priority int) *gopf.Operator {
	op := gopf.New()
	op.Settings.Peering.Identity = name
	op.Settings.Peering.Priority = priority
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create", diary.handler(name))
	x.OnUpdate("update", diary.handler(name))
	return op
}

func records(t *testing.T, c *gopftest.Cluster) []string {
	t.Helper()
	status, _, _ := unstructured.NestedMap(c.Get(t, peerings, "", "default").Object, "status")
	var names []string
	for name := range status {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestOperatorsOfDifferentPrioritiesHandOverAndBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		set := func(field string) {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		gopftest.Start(t, peer(&diary, "low", 0), c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		stop := gopftest.Start(t, peer(&diary, "high", 1), c)
		time.Sleep(5 * time.Second)
		set("b")
		if got := records(t, c); !slices.Equal(got, []string{"high", "low"}) {
			t.Errorf("records: %q", got)
		}
		stop()
		time.Sleep(5 * time.Second)
		set("c")
		want := []string{"low create a", "high update b", "low update c"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := records(t, c); !slices.Equal(got, []string{"low"}) {
			t.Errorf("records after the stop: %q", got)
		}
	})
}

func TestOperatorsOfEqualPriorityPauseAndLogHowToContinue(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		var log lines
		gopftest.Start(t, peer(&diary, "one", 0), c, gopf.Log(log.logger()))
		settle()
		stop := gopftest.Start(t, peer(&diary, "two", 0), c)
		time.Sleep(5 * time.Second)
		c.Create(t, example("x", "a"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 0 {
			t.Errorf("handled: %q", got)
		}
		if !log.has("give one of them another --priority") {
			t.Error("the log does not tell how to continue")
		}
		stop()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestOperatorsWaitForAMandatoryPeering(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := peer(&diary, "one", 0)
		op.Settings.Peering.Mandatory = true
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 0 {
			t.Errorf("handled without a peering: %q", got)
		}
		meet(t, c)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAStandaloneOperatorIgnoresPeerings(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		gopftest.Start(t, peer(&diary, "other", 100), c)
		settle()
		op := peer(&diary, "one", 0)
		op.Settings.Peering.Standalone = true
		gopftest.Start(t, op, c)
		settle()
		if got := records(t, c); !slices.Equal(got, []string{"other"}) {
			t.Errorf("records: %q", got)
		}
	})
}

func TestARecreatedPeeringPausesOperatorsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		gopftest.Start(t, peer(&diary, "low", 0), c)
		settle()
		high := map[string]any{"high": map[string]any{"priority": 100, "lifetime": 3600, "lastseen": time.Now().UTC().Format(time.RFC3339)}}
		slow := c.Fault(gopftest.Requests("patch", "clusterkopfpeerings").From(1), gopftest.Hold(4*time.Second))
		c.Delete(t, definitions, "", "clusterkopfpeerings.kopf.dev")
		time.Sleep(3 * time.Second) // the operator is still removing its record
		meet(t, c)
		c.Patch(t, peerings, "", "default", map[string]any{"status": high})
		time.Sleep(time.Minute)
		slow.Stop()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 0 {
			t.Errorf("handled although a peer has a higher priority: %q", got)
		}
		if got := records(t, c); !slices.Equal(got, []string{"high", "low"}) {
			t.Errorf("records: %q", got)
		}
	})
}

func TestReplicasOfOneElectionAreOnePeer(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		var stops []func()
		for _, name := range []string{"one", "two"} {
			op, _ := replica(&diary, name)
			op.Settings.Peering.Standalone = false
			stops = append(stops, gopftest.Start(t, op, c))
			time.Sleep(10 * time.Second)
		}
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		stops[0]()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a", "two update b"}; !slices.Equal(got, want) {
			t.Errorf("after the first stopped: got %q, want %q", got, want)
		}
		if got := records(t, c); len(got) != 1 {
			t.Errorf("records of %q, want one", got)
		}
	})
}
