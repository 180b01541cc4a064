package attacks_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// empties returns a JSON list of so many empty JSON objects. As the Go type of a handler,
// each of them takes thousands of bytes.
func empties(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" }

// typedObjects makes objects, and sends reviews of objects, that take much more memory as the
// Go type of a handler than as JSON, or that take minutes to decode.
func (s *scene) typedObjects() []string {
	var reviews sync.WaitGroup
	reviews.Go(s.typedReviews)
	spec := func(n int) string { return fmt.Sprintf(`{"field":"x","jobs":%s}`, empties(n)) }
	s.check(s.attacker.sendRaw(context.Background(), plains, "too-large", spec(40_000)))
	s.check(s.attacker.sendRaw(context.Background(), plains, "costly", `{"field":"x","limits":{"cpu":"123456789012345678901234e10000000"}}`))
	n := size(6, 20)
	name := func(i int) string { return fmt.Sprintf("typed-%d", i) }
	all(n, func(i int) { s.check(s.attacker.sendRaw(context.Background(), plains, name(i), spec(6_000))) })
	for i := range n {
		s.attacker.await("the typed object is handled", plains, name(i), handled)
	}
	all(n, func(i int) { s.check(s.attacker.TryPatch(plains, name(i), fields{"spec": fields{"field": "y"}})) })
	for i := range n {
		s.attacker.await("the typed object is updated", plains, name(i), updated)
	}
	reviews.Wait()
	return []string{"too-large", "costly"}
}

// typedReviews sends reviews from one address.
func (s *scene) typedReviews() {
	client := peer(5 * time.Second)
	defer client.CloseIdleConnections()
	var bodies []string
	for _, spec := range []string{`{"jobs":` + empties(2_000) + `}`, `{"jobs":` + empties(6_000) + `}`, `{"jobs":` + empties(60_000) + `}`, `{"limits":{"cpu":"1e10000000"}}`} {
		bodies = append(bodies, strings.NewReplacer(`"Target"`, `"Guarded"`, `"targets"`, `"guardeds"`).Replace(s.review(object(spec))))
	}
	end := time.Now().Add(time.Duration(size(4, 12)) * time.Second)
	var running sync.WaitGroup
	for i := range 40 {
		running.Go(func() {
			for time.Now().Before(end) {
				resp, err := client.Post("https://"+s.webhooks+"/guard", "application/json", strings.NewReader(bodies[i%len(bodies)]))
				if err != nil {
					continue // it may be cut off
				}
				_, _ = io.Copy(io.Discard, resp.Body) // it may be cut off
				resp.Body.Close()
			}
		})
	}
	running.Wait()
}
