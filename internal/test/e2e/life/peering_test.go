package life_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// peer is an operator that meets others and notes what it handles.
func peer(d *diary, name string, priority int) *gopf.Operator {
	op := newOperator()
	op.Settings.Peering.Standalone = false
	op.Settings.Peering.Identity = name
	op.Settings.Peering.Priority = priority
	op.Settings.Peering.Lifetime = 20 * time.Second
	d.handles(op, name)
	return op
}

// clusterwide makes an operator meet others at the cluster's own peerings,
// although it serves one namespace.
func clusterwide(op *gopf.Operator, name string) *gopf.Operator {
	op.Settings.Peering.Name = name
	op.OnStartup("clusterwide", func(_ context.Context, a *gopf.Activity) error {
		a.Settings.Peering.Clusterwide = true
		return nil
	})
	return op
}

// record is one as Kopf writes it.
func record(priority int, lifetime time.Duration) fields {
	return fields{
		"priority": priority, "lifetime": int(lifetime.Seconds()),
		"lastseen": time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00"),
	}
}

func TestOperatorsOfDifferentPrioritiesHandOverAndBack(t *testing.T) {
	for place, resource := range map[string]string{"namespaced": peerings, "cluster-wide": clusterPeerings} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			s.Create(resource, s.Name, nil)
			set := func(op *gopf.Operator) *gopf.Operator {
				if op.Settings.Peering.Name = s.Name; resource == clusterPeerings {
					clusterwide(op, s.Name)
				}
				return op
			}
			low := s.start(set(peer(d, "low", 0))).serving()
			s.Create(examples, "x", spec("a"))
			d.WaitFor(t, "low create a")
			high := s.start(set(peer(d, "high", 10))).serving()
			low.Log.WaitFor(t, "Pausing operations in favour of [<Peer high: priority=10, lifetime=20")
			s.Patch(examples, "x", spec("b"))
			d.WaitFor(t, "high update b")
			s.waitRecords(resource, s.Name, "high", "low")
			s.waitHandled("x", "b")
			high.Stop()
			low.Log.WaitFor(t, "Resuming operations after the pause.")
			s.Patch(examples, "x", spec("c"))
			d.WaitFor(t, "low update c")
			s.waitHandled("x", "c")
			low.Stop()
			d.Check(t, "low create a", "high update b", "low update c")
			if got := s.records(resource, s.Name); len(got) != 0 {
				t.Errorf("records are left: %q", got)
			}
		})
	}
}

func TestOperatorsOfEqualPrioritiesPauseAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "default", nil)
	one := s.start(peer(d, "one", 0)).serving()
	two := s.start(peer(d, "two", 0)).serving()
	for _, o := range []*operator{one, two} {
		o.Log.WaitFor(t, "Possibly conflicting operators with the same priority: [<Peer", "give one of them another --priority, or stop the others")
		o.Log.WaitFor(t, "Pausing all operators, including self")
	}
	s.Create(examples, "x", spec("a"))
	never(t, "somebody works", 2*time.Second, func() bool { return len(d.All()) > 0 })
	two.Stop()
	d.WaitFor(t, "one create a")
}

func TestPeersAreFrozenAndResumed(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "default", nil)
	options := []gopf.RunOption{gopf.Cluster(cluster), gopf.Namespaces(s.Name)}
	low := s.start(peer(d, "low", 0)).serving()
	vip := s.start(peer(d, "vip", 200)).serving()
	low.Log.WaitFor(t, "Pausing operations")
	vip.Stop()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "low create a")

	someone := gopf.New()
	freezing := gopf.PeerPause{Priority: 100, Lifetime: time.Minute, Identity: "human"}
	if err := someone.PausePeers(t.Context(), freezing, options...); err != nil {
		t.Fatal(err)
	}
	low.Log.WaitFor(t, "Pausing operations in favour of [<Peer human")
	s.Patch(examples, "x", spec("b"))
	never(t, "it is handled", time.Second, func() bool { return d.Has("low update b") })
	if err := someone.UnpausePeers(t.Context(), "human", options...); err != nil {
		t.Fatal(err)
	}
	d.WaitFor(t, "low update b")

	// It ends by itself, too.
	freezing.Lifetime = 8 * time.Second // an operator that sees it later does not pause
	if err := someone.PausePeers(t.Context(), freezing, options...); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "it pauses", func() bool { return len(low.Log.With("Pausing operations in favour of [<Peer human")) == 2 })
	s.Patch(examples, "x", spec("c"))
	d.WaitFor(t, "low update c")
	d.Check(t, "low create a", "low update b", "low update c")

	// What is not there cannot be frozen.
	someone.Settings.Peering.Name = "nowhere"
	if err := someone.PausePeers(t.Context(), freezing, options...); err == nil || !strings.Contains(err.Error(), "there is no peering object 'nowhere'") {
		t.Errorf("got %v", err)
	}
}

func TestRecordsOfKopfCount(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "default", fields{"status": fields{
		"dead":      fields{"priority": 100, "lifetime": 10, "lastseen": "2020-12-31T23:59:59.123456"},
		"whole":     fields{"priority": 100, "lifetime": "10", "lastseen": "2020-12-31T23:59:59Z"},
		"scribbled": "anything",
	}})
	o := s.start(peer(d, "ours", 0)).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "ours create a")
	o.Log.WaitFor(t, "A record in the peering object cannot be read and is ignored.", "scribbled")
	s.waitRecords(peerings, "default", "ours", "scribbled") // the dead are removed

	s.Patch(peerings, "default", fields{"status": fields{"kopf@host/20261115002445/43h": record(1, time.Minute)}})
	o.Log.WaitFor(t, "Pausing operations in favour of [<Peer kopf@host/20261115002445/43h")
	s.Patch(examples, "x", spec("b"))
	never(t, "it is handled", time.Second, func() bool { return d.Has("ours update b") })
	s.Patch(peerings, "default", fields{"status": fields{"kopf@host/20261115002445/43h": nil}})
	d.WaitFor(t, "ours update b")

	status := s.Get(peerings, "default").Object["status"].(fields)["ours"].(fields)
	if len(status) != 3 || status["priority"] != int64(0) || status["lifetime"] != int64(20) || !strings.HasSuffix(status["lastseen"].(string), "+00:00") {
		t.Errorf("our own record is %v", status)
	}
}

func TestADeletedPeeringObjectCountsUntilItsRecordsDie(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	const lifetime = 20 * time.Second
	began := time.Now()
	s.Create(peerings, "default", fields{"status": fields{"human": record(100, lifetime)}})
	o := s.start(peer(d, "ours", 0)).serving()
	o.Log.WaitFor(t, "Pausing operations")
	s.Create(examples, "x", spec("a"))
	s.Remove(peerings, "default")
	o.Log.WaitFor(t, "The peering object is gone.")
	if d.Has("ours create a") && time.Since(began) < lifetime {
		t.Error("the human is forgotten")
	}
	d.WaitFor(t, "ours create a")
	s.Create(peerings, "default", nil)
	s.waitRecords(peerings, "default", "ours")
}

func TestAMandatoryPeeringIsWaitedForInEachNamespace(t *testing.T) {
	t.Parallel()
	s, other, d := newSpace(t), newSpace(t), &diary{}
	s.Create(peerings, "meeting", nil)
	op := peer(d, "ours", 0)
	op.Settings.Peering.Mandatory = true
	op.Settings.Peering.Name = "meeting"
	o := s.start(op, gopf.Namespaces(other.Name)).serving()
	s.Create(examples, "x", spec("a"))
	o.Log.WaitFor(t, "Waiting for the peering object to be created", other.Name)
	never(t, "it is handled", time.Second, func() bool { return len(d.All()) > 0 })
	other.Create(peerings, "meeting", nil)
	d.WaitFor(t, "ours create a")
	s.waitRecords(peerings, "meeting", "ours")
	other.waitRecords(peerings, "meeting", "ours")

	// One of them pauses all.
	other.Patch(peerings, "meeting", fields{"status": fields{"human": record(100, time.Minute)}})
	o.Log.WaitFor(t, "Pausing operations in favour of [<Peer human")
	s.Patch(examples, "x", spec("b"))
	never(t, "it is handled", time.Second, func() bool { return d.Has("ours update b") })
	other.Patch(peerings, "meeting", fields{"status": fields{"human": nil}})
	d.WaitFor(t, "ours update b")
	o.Stop()
	s.waitRecords(peerings, "meeting")
	other.waitRecords(peerings, "meeting")
}

// TestPeeringsAreInstalledAndRemovedWhileOperatorsRun is about the group of old
// installations. It runs alone: all operators see what it does.
func TestPeeringsAreInstalledAndRemovedWhileOperatorsRun(t *testing.T) {
	const old = "zalando.org/v1/kopfpeerings"
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "default", nil)
	o := s.start(peer(d, "ours", 0)).serving()
	s.waitRecords(peerings, "default", "ours")
	install := func() {
		s.Create(definitions, "kopfpeerings.zalando.org", fields{"spec": fields{
			"scope": "Namespaced", "group": "zalando.org",
			"names": fields{"kind": "KopfPeering", "plural": "kopfpeerings", "singular": "kopfpeering"},
			"versions": []fields{{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
				"type": "object", "properties": fields{"status": fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}}}},
		}})
		t.Cleanup(func() { s.Remove(definitions, "kopfpeerings.zalando.org") })
		kit.Await(t, "the resource is served", func() bool {
			_, err := s.Of(old).List(t.Context(), listAll)
			return err == nil
		})
	}
	for round, field := range []string{"a", "b"} {
		install()
		s.Create(old, "default", fields{"status": fields{"human": record(100, time.Minute)}})
		kit.Await(t, "it pauses", func() bool { return len(o.Log.With("Pausing operations", "zalando.org")) > round })
		s.waitRecords(old, "default", "human", "ours")
		if round == 0 {
			s.Create(examples, "x", spec(field))
		} else {
			s.Patch(examples, "x", spec(field))
		}
		never(t, "it is handled", time.Second, func() bool { return len(d.All()) > round })
		s.Remove(definitions, "kopfpeerings.zalando.org")
		kit.Await(t, fmt.Sprintf("it goes on without the peering %s", field), func() bool { return len(d.All()) > round })
		kit.Await(t, "the definition is gone", func() bool { return s.Get(definitions, "kopfpeerings.zalando.org") == nil })
	}
	s.waitRecords(peerings, "default", "ours")
	o.Stop()
	d.Check(t, "ours create a", "ours update b")
}

func TestACommandWithRefusedCredentialsFails(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Create(peerings, "default", nil)
	config := rest.AnonymousClientConfig(cluster)
	config.BearerToken = "forged"
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	err := gopf.New().PausePeers(ctx, gopf.PeerPause{Priority: 1, Lifetime: time.Minute}, gopf.Cluster(config), gopf.Namespaces(s.Name))
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "rejects the credentials") {
		t.Errorf("got %v", err)
	}
}

func TestWorkThatAPeerFinishedIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "default", nil)
	delayed := func(name string, priority int) *gopf.Operator {
		op := peer(&diary{}, name, priority)
		x := gopf.For[*Example](op, examples)
		x.OnCreate("delayed", func(_ context.Context, c *gopf.Change[*Example]) error {
			d.Add("%s create %s #%d", name, c.Object.Spec.Field, c.Retry)
			if c.Retry == 0 {
				return gopf.RetryAfter(12*time.Second, errors.New("not yet"))
			}
			return nil
		})
		x.OnUpdate("changed", func(_ context.Context, c *gopf.Change[*Example]) error {
			d.Add("%s update %s", name, c.Object.Spec.Field)
			return nil
		})
		return op
	}
	low := s.start(delayed("low", 0)).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "low create a #0")
	high := s.start(delayed("high", 10)).serving()
	low.Log.WaitFor(t, "Pausing operations")
	d.WaitFor(t, "high create a #1")
	s.waitHandled("x", "a")
	s.Patch(examples, "x", spec("b"))
	d.WaitFor(t, "high update b")
	s.waitHandled("x", "b")
	high.Stop()
	low.Log.WaitFor(t, "Resuming operations after the pause.")
	never(t, "the work is done again", 2*time.Second, func() bool { return len(d.All()) > 3 || s.handled("x") != "b" })
	d.Check(t, "low create a #0", "high create a #1", "high update b")
}
