package attacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// denseObjects makes many small objects that take much memory when decoded, and whose
// handlers take long.
func (s *scene) denseObjects() []string {
	all(size(12, 150), func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, fmt.Sprintf("dense-%d", i), `{"field":"x","sleep":`+strconv.Itoa(size(2, 10))+`,"wide":`+wide(1900)+`}`))
	})
	time.Sleep(time.Duration(size(1, 2)) * time.Second) // many handlers run
	return nil
}

// fullWideObjects makes objects that take much memory when decoded, and on which the
// operator can save nothing.
func (s *scene) fullWideObjects() []string {
	filler := fmt.Sprintf(`"annotations":{"filler":%q}`, strings.Repeat("x", 256<<10-len("filler")))
	all(size(2, 24), func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, fmt.Sprintf("full-%d", i), `{"field":"x","wide":`+wide(size(8_000, 20_000))+`}`, filler))
	})
	time.Sleep(time.Duration(size(2, 3)) * time.Second) // the operator tries to save something
	return nil
}

// growingObjects enlarges objects while their handlers run. The handlers of the changes
// take long as well.
func (s *scene) growingObjects() []string {
	n := size(2, 12) // each costs the API server seconds, too
	name := func(i int) string { return fmt.Sprintf("growing-%d", i) }
	all(n, func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, name(i), fmt.Sprintf(`{"field":"x","sleep":%d}`, size(2, 8))))
	})
	var list any
	s.check(json.Unmarshal([]byte(wide(size(8_000, 20_000))), &list))
	all(n, func(i int) {
		s.check(s.attacker.TryPatch(plains, name(i), fields{"spec": fields{"wide": list}}))
	})
	time.Sleep(time.Duration(size(3, 10)) * time.Second) // the first handlers end
	return nil
}

// manySubs makes medium objects whose handlers declare many sub-handlers. The end of each is a
// write to the object, and many such writes at the same time delay the watches of the API server.
func (s *scene) manySubs() []string {
	all(size(16, 36), func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, fmt.Sprintf("subs-%d", i), fmt.Sprintf(`{"field":"x","subs":99,"filler":%q}`, strings.Repeat("x", 110_000))))
	})
	time.Sleep(time.Duration(size(8, 30)) * time.Second)
	return nil
}

// largeReads makes small objects whose handlers read a large one and keep it for a second.
func (s *scene) largeReads() []string {
	s.check(s.attacker.sendRaw(context.Background(), targets, "large", `{"field":"x","wide":`+wide(20_000)+`}`))
	all(size(120, 300), func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, fmt.Sprintf("reads-%d", i), `{"field":"x","sleep":1,"reads":"large"}`))
	})
	time.Sleep(time.Duration(size(3, 20)) * time.Second)
	return nil
}
