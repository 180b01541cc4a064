package childwatch

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
)

// read returns a child with so many bytes that cannot be compressed by much.
func read(t *testing.T, s *Store, namespace, name string, size, version int) *Child {
	t.Helper()
	seed := [32]byte{byte(version)}
	copy(seed[1:], namespace+name)
	noise := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(noise)
	body, err := object.ParseWhole(fmt.Appendf(nil, `{"metadata": {"namespace": %q, "name": %q, "uid": "uid-%s-%s", "resourceVersion": "%d"}, "data": {"key": %q}}`,
		namespace, name, namespace, name, version, base64.StdEncoding.EncodeToString(noise)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Read(configs, body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kept returns the number of children of a namespace with content, and that of all.
func kept(s *Store, namespace string) (whole, all int) {
	for e := range s.all.each() {
		if e.key().Namespace != namespace {
			continue
		}
		if all++; e.child().Body() != nil {
			whole++
		}
	}
	return whole, all
}

func TestTheContentOfLargeChildrenIsLimitedByNamespace(t *testing.T) {
	t.Parallel()
	s := store()
	const size = 40 << 10
	room := maxLarge / (base64.StdEncoding.EncodedLen(size) + size/10) // at least so many fit
	for i := range 3 * room {
		s.update(read(t, s, "full", fmt.Sprint("large-", i), size, 1), false)
	}
	s.update(read(t, s, "full", "small", 4<<10, 1), false)
	s.update(read(t, s, "other", "large", size, 1), false)
	whole, all := kept(s, "full")
	if all != 3*room+1 || whole < room+1 || whole > 2*room || s.Find(children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "full", Name: "small"}).Body() == nil || s.large["full"] > maxLarge {
		t.Errorf("the content of %d of %d children is kept, %d bytes", whole, all, s.large["full"])
	}
	if whole, _ := kept(s, "other"); whole != 1 {
		t.Error("one namespace takes the room of another")
	}

	// A new version of a child takes the room of the former one. Its size may differ a little.
	s.gone(configs, object.Identity{Namespace: "full", Name: "large-1", UID: "uid-full-large-1", ResourceVersion: "100"}, 0)
	for version := range 3 {
		s.update(read(t, s, "full", "large-0", size, version+2), false)
	}
	if c := s.Find(children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "full", Name: "large-0"}); c.Body() == nil || c.Version() != "4" {
		t.Errorf("the content of version %s was dropped", c.Version())
	}

	for id := range s.identities(configs, "") {
		id.ResourceVersion = "100"
		s.gone(configs, id, 0)
	}
	if left := slices.Collect(s.all.each()); len(left) > 0 || len(s.large) > 0 {
		t.Errorf("after the deletion, %d children and %v bytes are left", len(left), s.large)
	}
}

// Without its former content, it is not known whether a child has changed.
func TestAnEventOfAChildWithoutContentIsAChange(t *testing.T) {
	t.Parallel()
	s := store()
	s.large["full"] = maxLarge
	for version := range 2 {
		if owners := s.update(read(t, s, "full", "a", 30<<10, version+1), false); len(owners) != 1 {
			t.Errorf("version %d is a change for %q", version+1, owners)
		}
	}
}

// The watch of a kind reads the children of all owners one after another. Compressing large
// ones would delay the others.
func TestTheContentOfHugeChildrenIsNotKept(t *testing.T) {
	t.Parallel()
	s := store()
	for size, whole := range map[int]bool{hugeChild / 2: true, hugeChild: false, 700 << 10: false} {
		c := read(t, s, "ns", fmt.Sprint("child-", size), size, 1)
		s.update(c, false)
		known := s.Find(c.Key)
		if (c.Body() != nil) != whole || (known.Body() != nil) != whole {
			t.Errorf("%d bytes: the content is kept: %t, want %t", size, known.Body() != nil, whole)
		}
		if encoded := base64.StdEncoding.EncodedLen(size); known.Size() < encoded || known.Size() > encoded+1000 || known.Version() != "1" || known.UID != c.UID {
			t.Errorf("%d bytes: version %s of %s with %d bytes is known", size, known.Version(), known.UID, known.Size())
		}
	}
	if len(s.large) > 1 || s.large["ns"] > hugeChild {
		t.Errorf("%v bytes are counted", s.large)
	}
}

func TestTheReadinessOfAChildWithAHugeStatus(t *testing.T) {
	t.Parallel()
	s := store()
	long := strings.Repeat("x", hugeStatus)
	for status, ready := range map[string]bool{
		fmt.Sprintf(`{"text":%q}`, long[:hugeStatus/2]):                                                                  true,
		fmt.Sprintf(`{"text":%q}`, long):                                                                                 true,
		fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"True"}],"text":%q}`, long):                                 true,
		fmt.Sprintf(`{"text":%q,"conditions":[{"type":"Ready","status":"False"}]}`, long):                                false,
		fmt.Sprintf(`{"text":%q, "observedGeneration" : 1 ,"phase":"Failed"}`, long):                                     false,
		fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"True","message":%q}]}`, long):                              false,
		"{" + strings.Repeat(`"a":{"b":1},`, hugeStatus/10) + `"conditions":[{"type":"Ready","status":"True"}]}`:         false,
		fmt.Sprintf(`{"nested":{"conditions":[{"type":"Ready","status":"False"}]},"text":[%q,"}]",{"x":"\\\""}]}`, long): true,
	} {
		body, err := object.ParseWhole([]byte(`{"metadata":{"namespace":"ns","name":"a","uid":"u","resourceVersion":"1","generation":2},"status":` + status + `}`))
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Read(configs, body)
		if err != nil {
			t.Fatal(err)
		}
		if (c.Readiness.State == readiness.Current) != ready {
			t.Errorf("a status of %d bytes, %.60s: %v", len(status), status, c.Readiness)
		}
	}
}

// Every client that may create objects of the kind of a child can put long texts into the
// fields that the store keeps as they are.
func TestLongTextsInTheMetadataOfChildrenTakeLittleMemory(t *testing.T) {
	s := store()
	long := strings.Repeat("x", 250<<10)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 20 {
		reference := ""
		if i%2 == 0 {
			reference = fmt.Sprintf(`, "ownerReferences": [{"uid": "%s%d", "controller": true}]`, long, i)
		}
		body, err := object.ParseWhole(fmt.Appendf(nil, `{"metadata": {"namespace": "tenant", "name": "c-%d", "uid": "uid-%[1]d", "resourceVersion": "1",
			"annotations": {"gopf.dev/applied": %[2]q, "gopf.dev/owner": "%[2]s|x|x|x|%[2]s%[1]d"}%[3]s},
			"status": {"conditions": [{"type": "Ready", "status": "False", "message": %[2]q}]}}`, i, long, reference))
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Read(configs, body)
		if err != nil {
			t.Fatal(err)
		}
		if c.Readiness.State != readiness.InProgress {
			t.Fatalf("the child is %s", c.Readiness.State)
		}
		s.update(c, false)
	}
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("20 children take %d MiB", grown>>20)
	}
	runtime.KeepAlive(s)
}
