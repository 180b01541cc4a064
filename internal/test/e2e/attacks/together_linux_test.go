package attacks_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// together fills all limits of memory at the same time: of medium and of large objects whose
// handlers take long, of those that wait for them, and of reviews. Each of these alone fits
// the memory of the operator.
func (s *scene) together() []string {
	resources := []string{targets, plains, guardeds}
	send := func(kind string, n, sleep int, content string) {
		all(n, func(i int) {
			spec := fmt.Sprintf(`{"field":"x","sleep":%d,"content":%s}`, sleep, content)
			if err := s.attacker.sendRaw(context.Background(), resources[i%len(resources)], fmt.Sprintf("%s-%d", kind, i), spec); err != nil {
				s.Logf("not created: %.300v", err) // its review may be refused: the attacker waits for its own reviews
			}
		})
	}
	end := time.Now().Add(time.Duration(size(14, 45)) * time.Second)
	var running sync.WaitGroup
	running.Go(func() { send("dense", size(32, 150), size(12, 25), wide(1000)) })
	running.Go(func() {
		send("wide", size(5, 12), size(12, 25), wide(14_000))
		send("long", size(20, 60), 0, `"`+strings.Repeat("x", 1_400_000)+`"`) // they wait for the wide ones
	})
	running.Go(func() {
		time.Sleep(3 * time.Second) // the handlers have started
		s.changedReviews()
	})
	running.Wait()
	time.Sleep(time.Until(end)) // more handlers start
	return nil
}
