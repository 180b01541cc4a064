package attacks_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bomb returns compressed JSON of about as many characters in base64. Each of them
// unpacks to about a thousand characters, of which each takes many bytes when decoded.
func bomb(size int) string {
	var member bytes.Buffer
	w, _ := gzip.NewWriterLevel(&member, gzip.BestCompression)
	_, _ = w.Write(bytes.Repeat([]byte(`{},`), 6<<20))
	_ = w.Close()
	all := bytes.Repeat(member.Bytes(), max(1, size*3/4/member.Len())) // readers go on with the next member
	return base64.StdEncoding.EncodeToString(all)
}

// packed returns a text gzipped and in base64.
func packed(text string) string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write([]byte(text)) // a buffer never fails
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// record is a record of a handler that succeeded.
func record(purpose, more string) string {
	const moment = "2026-01-01T00:00:00Z"
	return fmt.Sprintf(`{"started":%q,"stopped":%q,"purpose":%q,"retries":1,"success":true,"failure":false%s}`, moment, moment, purpose, more)
}

// wide returns a JSON list of so many JSON objects, which take the most memory for
// their bytes.
func wide(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"a":1},`, n), ",") + "]"
}

// deep returns JSON nested that deep.
func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// all calls the function n times, a few at a time, as the API server needs it.
func all(n int, fn func(i int)) {
	var running sync.WaitGroup
	places := make(chan struct{}, 3)
	for i := range n {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			fn(i)
		})
	}
	running.Wait()
}

// bombs puts bombs into the annotations of handled objects and of new ones.
func (s *scene) bombs(size int) []string {
	text := bomb(size)
	for _, resource := range []string{targets, plains} {
		s.attacker.Create(resource, "note", fields{"spec": fields{"field": "x"}})
		s.attacker.Create(resource, "base", fields{"spec": fields{"field": "x"}})
		s.attacker.await("handled", resource, "note", handled)
		s.attacker.await("handled", resource, "base", handled)
		s.check(s.attacker.TryPatch(resource, "note", fields{"metadata": fields{"annotations": fields{prefix + "gopf.handling": `{"purpose":"update","started":"2026-01-01T00:00:00Z","message":"gz:` + text + `"}`}}, "spec": fields{"field": "y"}}))
		s.check(s.attacker.TryPatch(resource, "base", fields{"metadata": fields{"annotations": fields{lastHandled: nil, lastHandled + "-gz": text}}, "spec": fields{"field": "y"}}))
		s.check(s.attacker.sendRaw(context.Background(), resource, "new", `{"field":"x"}`, fmt.Sprintf(`"annotations":{"%s-gz":%q}`, lastHandled, text)))
	}
	return []string{"note", "base", "new"}
}

// smallBombs makes many small objects whose bases are as large as the operator accepts when
// they are decompressed and decoded. No object is to blame: such bases are valid.
func (s *scene) smallBombs() []string {
	text := packed(`{"spec":{"field":"x","wide":` + wide(40_000) + `}}`)
	all(size(40, 300), func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, fmt.Sprintf("small-bomb-%d", i), `{"field":"y"}`, fmt.Sprintf(`"annotations":{"%s-gz":%q}`, lastHandled, text)))
	})
	time.Sleep(time.Second) // the operator decodes them
	return nil
}

func (s *scene) check(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

// fullAnnotations leaves no room for annotations of the operator, then deletes.
func (s *scene) fullAnnotations() []string {
	for _, resource := range []string{targets, plains} {
		s.attacker.Create(resource, "full", fields{"spec": fields{"field": "x"}})
		s.attacker.await("handled", resource, "full", handled)
		o := s.attacker.Get(resource, "full")
		left := 256<<10 - len("filler")
		for key, value := range o.GetAnnotations() {
			left -= len(key) + len(value)
		}
		s.check(s.attacker.TryPatch(resource, "full", fields{"metadata": fields{"annotations": fields{"filler": strings.Repeat("x", left)}}, "spec": fields{"field": "y"}}))
		s.check(s.attacker.sendRaw(context.Background(), resource, "born-full", `{"field":"x"}`, fmt.Sprintf(`"annotations":{"filler":%q}`, strings.Repeat("x", 256<<10-len("filler")))))
	}
	time.Sleep(time.Second) // the operator tries to save something
	s.attacker.clear()
	return []string{"full", "born-full"}
}

// deepObjects makes objects nested too deep, new ones and handled ones.
func (s *scene) deepObjects() []string {
	s.check(s.attacker.sendRaw(context.Background(), plains, "deep", `{"x":`+deep(9_900)+`}`))
	s.check(s.attacker.sendRaw(context.Background(), plains, "less-deep", `{"x":`+deep(900)+`}`))
	s.attacker.await("handled", plains, "less-deep", handled)
	if err := s.attacker.sendRaw(context.Background(), targets, "deep", `{"x":`+deep(9_900)+`}`); err == nil {
		s.Error("a review of an object that cannot be read allowed it")
	}
	return []string{"deep"}
}

// wideObjects makes many objects that take much memory when decoded: as much as is
// allowed, and more.
func (s *scene) wideObjects() []string {
	spec := func(n int) string { return `{"field":"x","wide":` + wide(n) + `}` }
	s.check(s.attacker.sendRaw(context.Background(), plains, "too-wide", spec(size(60_000, 130_000))))
	n, width := size(1, 4), size(8_000, 20_000) // each costs the API server seconds, too
	name := func(i int) string { return fmt.Sprintf("wide-%d", i) }
	all(n, func(i int) { s.check(s.attacker.sendRaw(context.Background(), plains, name(i), spec(width))) })
	s.check(s.attacker.sendRaw(context.Background(), targets, "wide", spec(width)))
	for i := range n {
		s.attacker.await("the wide object is handled", plains, name(i), handled)
	}
	all(n, func(i int) { s.check(s.attacker.TryPatch(plains, name(i), fields{"spec": fields{"field": "y"}})) })
	for i := range n {
		s.attacker.await("the wide object is updated", plains, name(i), updated)
	}
	return []string{"too-wide"}
}

func updated(o *unstructured.Unstructured) bool {
	result, _, _ := unstructured.NestedString(o.Object, "status", "update", "field")
	return result == "y"
}

// longObjects makes objects that are as long as the API server stores them.
func (s *scene) longObjects() []string {
	text := strings.Repeat("x", 1_400_000)
	n := size(2, 10)
	all(n, func(i int) {
		s.check(s.attacker.sendRaw(context.Background(), plains, fmt.Sprintf("long-%d", i), `{"field":"x","x":"`+text+`"}`))
	})
	for i := range n {
		s.attacker.await("handled", plains, fmt.Sprintf("long-%d", i), handled)
	}
	return nil
}

// largeStatuses fills the status, also where the operator puts its results.
func (s *scene) largeStatuses() []string {
	text := strings.Repeat("x", 1_000_000)
	n := size(2, 6)
	all(n, func(i int) {
		name := fmt.Sprintf("status-%d", i)
		s.attacker.Create(targets, name, fields{"spec": fields{"field": "x"}})
		s.attacker.await("the object is handled", targets, name, handled) // or else there may be no update
		s.check(s.attacker.TryPatch(targets, name, fields{"status": fields{"create": text[:10], "x": text}}, "status"))
		s.check(s.attacker.TryPatch(targets, name, fields{"spec": fields{"field": "y"}}))
		s.check(s.attacker.sendRaw(context.Background(), plains, name, `{"field":"x"}`))
		s.attacker.await("the object is handled", plains, name, handled)
		s.check(s.attacker.TryPatch(plains, name, fields{"status": fields{"update": []any{1, nil, text}, "x": nil}}))
		s.check(s.attacker.TryPatch(plains, name, fields{"spec": fields{"field": "y"}}))
	})
	for i := range n {
		s.attacker.await("the object is updated", targets, fmt.Sprintf("status-%d", i), updated)
		s.attacker.await("the object is updated", plains, fmt.Sprintf("status-%d", i), updated)
	}
	return nil
}

// patches changes one object as fast as it can.
func (s *scene) patches() []string {
	for _, resource := range []string{targets, plains} {
		s.attacker.Create(resource, "restless", fields{"spec": fields{"field": "x"}})
	}
	end := time.Now().Add(time.Duration(size(3, 4)) * time.Second)
	all(6, func(i int) {
		n := s.attacker.patchUntil(end, []string{targets, plains}[i%2], "restless", func(n int) fields {
			return fields{"spec": fields{"field": fmt.Sprint(i, n), "more": strings.Repeat("x", 10_000)}}
		})
		s.Logf("%d patches", n)
	})
	return nil
}

// many makes hundreds of objects at once.
func (s *scene) many() []string {
	all(10, func(i int) {
		for n := range size(10, 40) {
			s.check(s.attacker.sendRaw(context.Background(), []string{targets, plains}[n%2], fmt.Sprintf("many-%d-%d", i, n), `{"field":"x"}`))
		}
	})
	return nil
}
