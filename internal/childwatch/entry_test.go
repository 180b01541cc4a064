package childwatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
)

// made returns a child with random properties.
func made(random *rand.Rand, packer *object.Packer, key children.Key, uid, owner string) *Child {
	yes := func() bool { return random.IntN(2) > 0 }
	c := &Child{
		Key: key, UID: uid, Owner: owner, Stamp: random.Uint32(), Applied: yes(), Labelled: yes(), Deleting: yes(), Finalized: yes(), Orphan: yes(),
		Digest: []string{"", "0001e240", "1E240", "not a number"}[random.IntN(4)], hollow: yes(), mark: random.Uint64(),
	}
	if yes() {
		c.Controller = owner
	}
	if yes() {
		c.Readiness = readiness.Verdict{State: readiness.Failed, Message: "no"}
	}
	c.packed = packer.Pack(&object.Body{Identity: object.Identity{
		APIVersion: key.APIVersion, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: uid, Deleting: c.Deleting,
		ResourceVersion: []string{"", "0", "7", "07", "18446744073709551616", "text"}[random.IntN(6)],
	}})
	return c
}

// Compares the entries with plain maps after each of many random steps.
func TestEntriesAreFoundByUIDNameAndOwner(t *testing.T) {
	t.Parallel()
	var packer object.Packer
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := newEntries()
		if seed%2 == 0 { // names rarely have the same hash
			all.hash = func(k children.Key) uint64 { return uint64(len(k.Namespace)) }
		}
		known, named := map[string]*Child{}, map[children.Key]*Child{}
		drop := func(uid string) {
			c := known[uid]
			if c == nil {
				return
			}
			if all.known(c.Key, "other") != nil {
				t.Fatalf("seed %d: the name alone finds %v", seed, c.Key)
			}
			k := c.Key
			k.APIVersion = "another version"
			e := all.known(k, uid)
			if got := e.child(); !reflect.DeepEqual(got, c) {
				t.Fatalf("seed %d: %s is %+v, want %+v", seed, uid, got, c)
			}
			all.remove(e)
			if delete(known, uid); named[c.Key] == c {
				delete(named, c.Key)
			}
		}
		for range 60 {
			uid := fmt.Sprint("uid-", random.IntN(8))
			drop(uid)
			if random.IntN(3) == 0 {
				continue
			}
			key := children.Key{APIVersion: "v1", Kind: []string{"A", "B"}[random.IntN(2)], Namespace: []string{"", "ns"}[random.IntN(2)], Name: fmt.Sprint(random.IntN(2))}
			owner := []string{"", "a", "b"}[random.IntN(3)]
			c := made(random, &packer, key, uid, owner)
			all.add(entryOf(c))
			known[uid], named[key] = c, c

			for _, kind := range []string{"A", "B"} {
				for _, namespace := range []string{"", "ns"} {
					for _, name := range []string{"0", "1"} {
						k := children.Key{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name}
						if got, want := all.find(k).child(), named[k]; !reflect.DeepEqual(got, want) && !(got == nil && want == nil) {
							t.Fatalf("seed %d: %v is %+v, want %+v", seed, k, got, want)
						}
					}
				}
			}
			for _, owner := range []string{"a", "b"} {
				var got, want []string
				for e := range all.of(owner) {
					got = append(got, e.child().UID)
				}
				for uid, c := range known {
					if c.Owner == owner {
						want = append(want, uid)
					}
				}
				if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Fatalf("seed %d: the children of %s are %q, want %q", seed, owner, got, want)
				}
			}
		}
		for uid := range maps.Clone(known) {
			drop(uid)
		}
		if len(all.hashed)+len(all.owned) > 0 {
			t.Fatalf("seed %d: something is left: %+v", seed, all)
		}
	}
}

// The memory of an operator with many children depends on it.
func TestAChildTakesLittleMemory(t *testing.T) {
	const owners = 5_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := store()
	for i := range owners {
		for j := range 3 {
			raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object-%06d-%d","namespace":"ns-%d","uid":"5f1b9a52-8b7e-4d43-9df5-%012d","resourceVersion":"%d",`+
				`"ownerReferences":[{"controller":true,"uid":"0b0d4b56-52a3-4b9a-a2d1-%012d"}],"annotations":{"gopf.dev/applied":"%08x"},"labels":{"gopf.dev/children":"test"}},`+
				`"data":{"config":"the same text in all of them, which a dictionary makes short","name":"object-%06d"}}`, i, j, i%50, 3*i+j, 1000+i, i, i, i)
			body, err := object.ParseWhole(raw)
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.Read(configs, body)
			if err != nil {
				t.Fatal(err)
			}
			s.update(c, false)
		}
	}
	each := (heap() - before) / (3 * owners)
	t.Logf("%d bytes per child", each)
	if each > 600 {
		t.Errorf("a child takes %d bytes", each)
	}
	runtime.KeepAlive(s)
}
