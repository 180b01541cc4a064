package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// children attacks the reconcile handlers: with large objects that have the label of children,
// with owners of too many and of large children, and with children that change all the time.
// Meanwhile, a deleted child of another tenant must be created again in time.
func (s *scene) children() []string {
	s.bystander.Create(owners, "calm", fields{"spec": fields{"value": "x", "count": calmPieces}})
	defer s.bystander.Remove(owners, "calm")
	s.bystander.await("a piece of the owner", pieces, fmt.Sprintf("calm-%d", calmPieces-1), exists)
	label := s.bystander.Get(pieces, "calm-0").GetLabels()["gopf.dev/children"]
	if label == "" {
		s.Error("a child has no label")
		return nil
	}
	s.repairedUntil(time.Now().Add(time.Duration(size(6, 45))*time.Second), func(end time.Time) {
		var running sync.WaitGroup
		running.Go(func() { s.labelledObjects(end, label) })
		running.Go(func() { s.managedByMany(label) })
		running.Go(func() { s.greedyOwners(end) })
		s.restlessChildren(end)
		running.Wait()
	})
	return nil
}

// referrers attacks with one object that many owners refer to. Each of its changes calls all
// of their handlers, which write children, whose reviews by the operator itself send requests.
func (s *scene) referrers() []string {
	s.bystander.Create(owners, "calm", fields{"spec": fields{"value": "x", "count": calmPieces}})
	defer s.bystander.Remove(owners, "calm")
	s.bystander.await("a piece of the owner", pieces, fmt.Sprintf("calm-%d", calmPieces-1), exists)
	s.attacker.Create(targets, "hot", fields{"spec": fields{"value": "x"}})
	all(size(100, 800), func(i int) {
		if err := s.attacker.sendRaw(context.Background(), owners, fmt.Sprintf("referrer-%d", i), `{"source":"hot"}`); err != nil {
			s.Errorf("an owner is not created: %.300v", err)
		}
	})
	s.attacker.await("a part of an owner", parts, "referrer-0", exists)
	s.repairedUntil(time.Now().Add(time.Duration(size(6, 45))*time.Second), func(end time.Time) {
		s.attacker.patchUntil(end, targets, "hot", func(i int) fields { return fields{"spec": fields{"value": fmt.Sprint(i)}} })
	})
	return nil
}

// calmPieces is the number of the bystander's children. An owner whose child is deleted again
// and again is paused, so each is deleted only a few times.
const calmPieces = 30

// repairedUntil makes an attack that ends at the given time. Meanwhile, it deletes children of
// the bystander one after another, which must be created again in time.
func (s *scene) repairedUntil(end time.Time, attack func(end time.Time)) {
	var running sync.WaitGroup
	running.Go(func() { attack(end) })
	for i := 0; time.Now().Before(end); i++ {
		if err := s.repaired(fmt.Sprintf("calm-%d", i%calmPieces)); err != nil {
			s.Error(err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	running.Wait()
}

// managedByMany makes an object that looks like a child, with thousands of fields of the operator and
// thousands of other managers.
func (s *scene) managedByMany(label string) {
	entry := func(manager, fields string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Apply","apiVersion":"attacks.gopf.dev/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}}}`, manager, fields)
	}
	var names []string
	for i := range 8000 {
		names = append(names, fmt.Sprintf(`"f:%x":{}`, i))
	}
	entries := []string{entry(label, strings.Join(names, ","))}
	for i := range 2500 {
		entries = append(entries, entry(fmt.Sprintf("m%d", i), `"f:zz":{}`))
	}
	metadata := fmt.Sprintf(`"labels":{"gopf.dev/children":%q},"managedFields":[%s]`, label, strings.Join(entries, ","))
	if err := s.attacker.sendRaw(context.Background(), pieces, "managed", `{"a":1}`, metadata); err != nil {
		s.Errorf("not created: %.300v", err)
	}
}

// labelledObjects makes objects that look like children, of all sizes, and changes them.
func (s *scene) labelledObjects(end time.Time, label string) {
	metadata := fmt.Sprintf(`"labels":{"gopf.dev/children":%q}`, label)
	all(size(12, 60), func(i int) {
		value := []string{wide(100), wide(5_000), wide(100_000), `"` + strings.Repeat("x", 1_000_000) + `"`}[i%4]
		if err := s.attacker.sendRaw(context.Background(), pieces, fmt.Sprintf("labelled-%d", i), `{"value":`+value+`}`, metadata); err != nil {
			s.Logf("not created: %.300v", err)
		}
	})
	s.attacker.patchUntil(end, pieces, "labelled-2", func(i int) fields { return fields{"spec": fields{"change": i}} })
}

// greedyOwners makes owners of more children than the operator allows, of many, and of large
// ones.
func (s *scene) greedyOwners(end time.Time) {
	for name, spec := range map[string]string{
		"too-many": `{"count":1000000}`,
		"many":     fmt.Sprintf(`{"count":%d}`, size(60, 300)),
		"large":    fmt.Sprintf(`{"count":%d,"value":%q}`, size(4, 20), strings.Repeat("x", 500_000)),
	} {
		if err := s.attacker.sendRaw(context.Background(), owners, name, spec); err != nil {
			s.Errorf("an owner is not created: %.300v", err)
		}
	}
	s.attacker.patchUntil(end, owners, "large", func(i int) fields { return fields{"spec": fields{"change": i}} })
}

// restlessChildren changes and deletes the children of the attacker as fast as it can.
func (s *scene) restlessChildren(end time.Time) {
	s.attacker.Create(owners, "restless", fields{"spec": fields{"value": "x", "count": 3}})
	s.attacker.await("a piece of the owner", pieces, "restless-2", exists)
	var running sync.WaitGroup
	running.Go(func() {
		s.attacker.patchUntil(end, pieces, "restless-0", func(i int) fields {
			return fields{"spec": fields{"value": fmt.Sprint(i), "more": strings.Repeat("x", 1000*(i%200))}}
		})
	})
	for time.Now().Before(end) {
		_ = s.attacker.Of(pieces).Delete(context.Background(), "restless-1", metav1.DeleteOptions{}) // it may not exist now
	}
	running.Wait()
}

// repaired checks that a child of the bystander is created again in time after it was deleted.
func (s *scene) repaired(name string) error {
	limit, watch := inTime+s.slowness(), s.watch()
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	before, err := s.bystander.Of(pieces).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read a child of another tenant: %w", err)
	}
	if err := s.bystander.Of(pieces).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete a child of another tenant: %w", err)
	}
	for ctx.Err() == nil && !watch.late(limit) {
		if now, err := s.bystander.Of(pieces).Get(ctx, name, metav1.GetOptions{}); err == nil && now.GetUID() != before.GetUID() {
			s.Logf("a child of another tenant was repaired within %v", time.Since(watch.began).Round(time.Millisecond))
			return nil
		}
		time.Sleep(20 * time.Millisecond) // nothing else tells when a cluster is as it should be
	}
	return errors.New("a child of another tenant was not repaired within " + limit.String())
}

func exists(*unstructured.Unstructured) bool { return true }
