package life_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
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
			s.create(resource, s.name, nil)
			set := func(op *gopf.Operator) *gopf.Operator {
				if op.Settings.Peering.Name = s.name; resource == clusterPeerings {
					clusterwide(op, s.name)
				}
				return op
			}
			low := s.start(set(peer(d, "low", 0))).serving()
			s.create(examples, "x", spec("a"))
			d.waitFor(t, "low create a")
			high := s.start(set(peer(d, "high", 10))).serving()
			low.log.waitFor(t, "Pausing operations in favour of [<Peer high: priority=10, lifetime=20")
			s.patch(examples, "x", spec("b"))
			d.waitFor(t, "high update b")
			s.waitRecords(resource, s.name, "high", "low")
			s.waitHandled("x", "b")
			high.stop()
			low.log.waitFor(t, "Resuming operations after the pause.")
			s.patch(examples, "x", spec("c"))
			d.waitFor(t, "low update c")
			s.waitHandled("x", "c")
			low.stop()
			d.check(t, "low create a", "high update b", "low update c")
			if got := s.records(resource, s.name); len(got) != 0 {
				t.Errorf("records are left: %q", got)
			}
		})
	}
}

func TestOperatorsOfEqualPrioritiesPauseAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.create(peerings, "default", nil)
	one := s.start(peer(d, "one", 0)).serving()
	two := s.start(peer(d, "two", 0)).serving()
	for _, o := range []*operator{one, two} {
		o.log.waitFor(t, "Possibly conflicting operators with the same priority: [<Peer", "give one of them another --priority, or stop the others")
		o.log.waitFor(t, "Pausing all operators, including self")
	}
	s.create(examples, "x", spec("a"))
	never(t, "somebody works", 2*time.Second, func() bool { return len(d.all()) > 0 })
	two.stop()
	d.waitFor(t, "one create a")
}

func TestPeersAreFrozenAndResumed(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.create(peerings, "default", nil)
	options := []gopf.RunOption{gopf.Cluster(cluster), gopf.Namespaces(s.name)}
	low := s.start(peer(d, "low", 0)).serving()
	vip := s.start(peer(d, "vip", 200)).serving()
	low.log.waitFor(t, "Pausing operations")
	vip.stop()
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "low create a")

	someone := gopf.New()
	freezing := gopf.Freezing{Priority: 100, Lifetime: time.Minute, Identity: "human"}
	if err := someone.FreezePeers(t.Context(), freezing, options...); err != nil {
		t.Fatal(err)
	}
	low.log.waitFor(t, "Pausing operations in favour of [<Peer human")
	s.patch(examples, "x", spec("b"))
	never(t, "it is handled", time.Second, func() bool { return d.has("low update b") })
	if err := someone.ResumePeers(t.Context(), "human", options...); err != nil {
		t.Fatal(err)
	}
	d.waitFor(t, "low update b")

	// It ends by itself, too.
	freezing.Lifetime = 2 * time.Second
	if err := someone.FreezePeers(t.Context(), freezing, options...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it pauses", func() bool { return len(low.log.with("Pausing operations in favour of [<Peer human")) == 2 })
	s.patch(examples, "x", spec("c"))
	d.waitFor(t, "low update c")
	d.check(t, "low create a", "low update b", "low update c")

	// What is not there cannot be frozen.
	someone.Settings.Peering.Name = "nowhere"
	if err := someone.FreezePeers(t.Context(), freezing, options...); err == nil || !strings.Contains(err.Error(), "there is no peering object 'nowhere'") {
		t.Errorf("got %v", err)
	}
}

func TestRecordsOfKopfCount(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.create(peerings, "default", fields{"status": fields{
		"dead":      fields{"priority": 100, "lifetime": 10, "lastseen": "2020-12-31T23:59:59.123456"},
		"whole":     fields{"priority": 100, "lifetime": "10", "lastseen": "2020-12-31T23:59:59Z"},
		"scribbled": "anything",
	}})
	o := s.start(peer(d, "ours", 0)).serving()
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "ours create a")
	o.log.waitFor(t, "A record in the peering object cannot be read and is ignored.", "scribbled")
	s.waitRecords(peerings, "default", "ours", "scribbled") // the dead are removed

	s.patch(peerings, "default", fields{"status": fields{"kopf@host/20261115002445/43h": record(1, time.Minute)}})
	o.log.waitFor(t, "Pausing operations in favour of [<Peer kopf@host/20261115002445/43h")
	s.patch(examples, "x", spec("b"))
	never(t, "it is handled", time.Second, func() bool { return d.has("ours update b") })
	s.patch(peerings, "default", fields{"status": fields{"kopf@host/20261115002445/43h": nil}})
	d.waitFor(t, "ours update b")

	status := s.get(peerings, "default").Object["status"].(fields)["ours"].(fields)
	if len(status) != 3 || status["priority"] != int64(0) || status["lifetime"] != int64(20) || !strings.HasSuffix(status["lastseen"].(string), "+00:00") {
		t.Errorf("our own record is %v", status)
	}
}

func TestADeletedPeeringObjectCountsUntilItsRecordsDie(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.create(peerings, "default", fields{"status": fields{"human": record(100, 4*time.Second)}})
	o := s.start(peer(d, "ours", 0)).serving()
	o.log.waitFor(t, "Pausing operations")
	s.create(examples, "x", spec("a"))
	s.delete(peerings, "default")
	o.log.waitFor(t, "The peering object is gone.")
	if d.has("ours create a") {
		t.Error("the human is forgotten")
	}
	d.waitFor(t, "ours create a")
	s.create(peerings, "default", nil)
	s.waitRecords(peerings, "default", "ours")
}

func TestAMandatoryPeeringIsWaitedForInEachNamespace(t *testing.T) {
	t.Parallel()
	s, other, d := newSpace(t), newSpace(t), &diary{}
	s.create(peerings, "meeting", nil)
	op := peer(d, "ours", 0)
	op.Settings.Peering.Mandatory = true
	op.Settings.Peering.Name = "meeting"
	o := s.start(op, gopf.Namespaces(other.name)).serving()
	s.create(examples, "x", spec("a"))
	o.log.waitFor(t, "Waiting for the peering object to be created", other.name)
	never(t, "it is handled", time.Second, func() bool { return len(d.all()) > 0 })
	other.create(peerings, "meeting", nil)
	d.waitFor(t, "ours create a")
	s.waitRecords(peerings, "meeting", "ours")
	other.waitRecords(peerings, "meeting", "ours")

	// One of them pauses all.
	other.patch(peerings, "meeting", fields{"status": fields{"human": record(100, time.Minute)}})
	o.log.waitFor(t, "Pausing operations in favour of [<Peer human")
	s.patch(examples, "x", spec("b"))
	never(t, "it is handled", time.Second, func() bool { return d.has("ours update b") })
	other.patch(peerings, "meeting", fields{"status": fields{"human": nil}})
	d.waitFor(t, "ours update b")
	o.stop()
	s.waitRecords(peerings, "meeting")
	other.waitRecords(peerings, "meeting")
}

// TestPeeringsAreInstalledAndRemovedWhileOperatorsRun is about the group of old
// installations. It runs alone: all operators see what it does.
func TestPeeringsAreInstalledAndRemovedWhileOperatorsRun(t *testing.T) {
	const old = "zalando.org/v1/kopfpeerings"
	s, d := newSpace(t), &diary{}
	s.create(peerings, "default", nil)
	o := s.start(peer(d, "ours", 0)).serving()
	s.waitRecords(peerings, "default", "ours")
	install := func() {
		s.create(definitions, "kopfpeerings.zalando.org", fields{"spec": fields{
			"scope": "Namespaced", "group": "zalando.org",
			"names": fields{"kind": "KopfPeering", "plural": "kopfpeerings", "singular": "kopfpeering"},
			"versions": []fields{{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
				"type": "object", "properties": fields{"status": fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}}}},
		}})
		t.Cleanup(func() { s.delete(definitions, "kopfpeerings.zalando.org") })
		eventually(t, "the resource is served", func() bool {
			_, err := s.of(old).List(t.Context(), listAll)
			return err == nil
		})
	}
	for round, field := range []string{"a", "b"} {
		install()
		s.create(old, "default", fields{"status": fields{"human": record(100, time.Minute)}})
		eventually(t, "it pauses", func() bool { return len(o.log.with("Pausing operations", "zalando.org")) > round })
		s.waitRecords(old, "default", "human", "ours")
		if round == 0 {
			s.create(examples, "x", spec(field))
		} else {
			s.patch(examples, "x", spec(field))
		}
		never(t, "it is handled", time.Second, func() bool { return len(d.all()) > round })
		s.delete(definitions, "kopfpeerings.zalando.org")
		eventually(t, fmt.Sprintf("it goes on without the peering %s", field), func() bool { return len(d.all()) > round })
		eventually(t, "the definition is gone", func() bool { return s.get(definitions, "kopfpeerings.zalando.org") == nil })
	}
	s.waitRecords(peerings, "default", "ours")
	o.stop()
	d.check(t, "ours create a", "ours update b")
}

func TestACommandWithRefusedCredentialsFails(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(peerings, "default", nil)
	config := rest.AnonymousClientConfig(cluster)
	config.BearerToken = "forged"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := gopf.New().FreezePeers(ctx, gopf.Freezing{Priority: 1, Lifetime: time.Minute}, gopf.Cluster(config), gopf.Namespaces(s.name))
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "refuses the credentials") {
		t.Errorf("got %v", err)
	}
}
