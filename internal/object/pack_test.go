package object

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// set is an object of some size that resembles others.
func set(name string, filler string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":"42",`+
		`"labels":{"app.kubernetes.io/name":"database","app.kubernetes.io/instance":%q}},"spec":{"replicas":3,"serviceName":%q,"template":{"spec":{"containers":[`+
		`{"name":"database","image":"registry.example.com/database:17.2","ports":[{"containerPort":5432,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m","memory":"256Mi"}},`+
		`"volumeMounts":[{"mountPath":"/var/lib/data","name":"data"}]}],"terminationGracePeriodSeconds":30}}},"filler":%q,"status":{"phase":"Ready"}}`, name, name, name, name, filler)
}

func mustParse(t testing.TB, raw []byte) *Body {
	t.Helper()
	b, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPackedBodiesAreRestoredExactly(t *testing.T) {
	for name, raws := range map[string][][]byte{
		"similar objects":     {set("a", ""), set("b", ""), set("c", "x")},
		"a large first one":   {set("a", strings.Repeat("0123456789abcdef", 10_000)), set("b", "")},
		"large ones":          {set("a", ""), set("b", strings.Repeat("x", 1<<20))},
		"tiny ones":           {[]byte(`{"metadata":{"name":"a"}}`), []byte(`{"metadata":{"name":"b"}}`), set("c", "")},
		"a tiny one in front": {[]byte(`{"metadata":{"name":"a"}}`), set("b", "")},
	} {
		t.Run(name, func(t *testing.T) {
			var p Packer
			var kept []*Packed
			for _, raw := range raws {
				kept = append(kept, p.Pack(mustParse(t, raw).At("43")))
			}
			for i, k := range kept {
				want := mustParse(t, raws[i]).At("43")
				for range 2 {
					got := k.Body()
					if !bytes.Equal(got.Raw(), want.Raw()) || got.Identity != want.Identity || got.Memory() != want.Memory() || got.Stale() != want.Stale() {
						t.Errorf("%d: got %+v", i, got)
					}
					phase, _ := got.Lookup("status", "phase")
					if known, _ := want.Lookup("status", "phase"); phase != known {
						t.Errorf("%d: the status is %v", i, phase)
					}
				}
			}
		})
	}
}

func TestSimilarObjectsTakeLittleMemory(t *testing.T) {
	var p Packer
	first, second := mustParse(t, set("first", "")), mustParse(t, set("second", ""))
	p.Pack(first)
	if size := p.Pack(second).Size(); size > second.Size()/6 {
		t.Errorf("%d of %d bytes are kept", size, second.Size())
	}
}

func TestPackersAreSafeForConcurrentUse(t *testing.T) {
	var p Packer
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			raw := set(fmt.Sprint(i), strings.Repeat("y", i*100))
			for range 50 {
				if got := p.Pack(mustParse(t, raw)).Body(); !bytes.Equal(got.Raw(), raw) {
					t.Error("another object was returned")
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkPack(b *testing.B) {
	var p Packer
	body := mustParse(b, set("a", ""))
	p.Pack(mustParse(b, set("b", "")))
	b.ReportAllocs()
	for b.Loop() {
		p.Pack(body)
	}
}

func BenchmarkUnpack(b *testing.B) {
	var p Packer
	p.Pack(mustParse(b, set("b", "")))
	packed := p.Pack(mustParse(b, set("a", "")))
	b.ReportAllocs()
	for b.Loop() {
		packed.Body()
	}
}

// An object that does not resemble the dictionary is compressed on its own.
func TestOtherObjectsTakeHalfOfTheirSize(t *testing.T) {
	var p Packer
	p.Pack(mustParse(t, set("first", "")))
	digits := make([]byte, 10_000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range digits {
		digits[i] = byte('0' + random.IntN(10))
	}
	raw, err := json.Marshal(map[string]any{"kind": "ConfigMap", "data": map[string]any{"digits": string(digits)}})
	if err != nil {
		t.Fatal(err)
	}
	other := mustParse(t, raw)
	packed := p.Pack(other)
	if size := packed.Size(); size > other.Size()/2 {
		t.Errorf("%d of %d bytes are kept", size, other.Size())
	}
	if got := packed.Body().Raw(); !bytes.Equal(got, raw) {
		t.Errorf("got %s", got)
	}
}

// An object that is half new: S2 alone does for a quick packing, but not otherwise.
func TestQuickPackingPrefersSpeed(t *testing.T) {
	var p Packer
	p.Pack(mustParse(t, set("first", "")))
	source := rand.New(rand.NewPCG(1, 2))
	digits := make([]byte, len(set("", ""))*2/3)
	for i := range digits {
		digits[i] = byte('0' + source.IntN(10))
	}
	raw := set("other", string(digits))
	slow, quick := p.Pack(mustParse(t, raw)), p.PackQuickly(mustParse(t, raw))
	if slow.head().form != deflated || quick.head().form != similar || quick.Size() <= slow.Size() || quick.Size() > len(raw)*2/3 {
		t.Errorf("of %d bytes, %d are kept in form %d; quickly packed %d in form %d", len(raw), slow.Size(), slow.head().form, quick.Size(), quick.head().form)
	}
	if !bytes.Equal(quick.Body().Raw(), raw) {
		t.Error("the quickly packed body has changed")
	}
	if odd := p.PackQuickly(mustParse(t, random(t, source, 4000))); odd.head().form != deflated {
		t.Errorf("an object that S2 does not shorten has form %d", odd.head().form)
	}
}

// random returns an object that resembles no other, of about so many bytes.
func random(t *testing.T, source *rand.Rand, size int) []byte {
	t.Helper()
	noise := make([]byte, size*3/4)
	for i := range noise {
		noise[i] = byte(source.IntN(256))
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "odd", "uid": fmt.Sprint(source.Uint64())}, "spec": map[string]any{"noise": noise}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAnOddFirstObjectDoesNotEnlargeTheOthersForLong(t *testing.T) {
	var p Packer
	source := rand.New(rand.NewPCG(1, 2))
	p.Pack(mustParse(t, random(t, source, 2000)))
	for i := range 20 {
		p.Pack(mustParse(t, set(fmt.Sprint("early-", i), "")))
	}
	late := mustParse(t, set("late", ""))
	if size := p.Pack(late).Size(); size > late.Size()/12 {
		t.Errorf("%d of %d bytes are kept", size, late.Size())
	}
}

// A tenant may make any number of odd objects. They cost the others nothing, and the number
// of dictionaries stays small.
func TestOddObjectsDoNotTakeTheDictionaryFromOthers(t *testing.T) {
	var p Packer
	source := rand.New(rand.NewPCG(1, 2))
	p.Pack(mustParse(t, random(t, source, 400)))
	kept := map[*dictionary]bool{}
	size := 0
	for i := range 2000 {
		odd := random(t, source, 400)
		packed := p.Pack(mustParse(t, odd))
		kept[packed.shape.dictionary] = true
		if i%100 == 0 && !bytes.Equal(packed.Body().Raw(), odd) {
			t.Fatal("another object was returned")
		}
		if i%10 == 0 {
			size = p.Pack(mustParse(t, set(fmt.Sprint("other-", i), ""))).Size()
		}
	}
	if whole := len(set("other-1990", "")); size > whole/12 {
		t.Errorf("%d of %d bytes are kept", size, whole)
	}
	if len(kept) > 10 || len(p.known.all) > maxDictionaries {
		t.Errorf("%d dictionaries are kept, and %d are tried", len(kept), len(p.known.all))
	}
}

// Objects of some resources never resemble each other. Most of them are not compared with a
// candidate. Others that do resemble each other still get a dictionary.
func TestUnlikeObjectsAreRarelyCompared(t *testing.T) {
	var p Packer
	source := rand.New(rand.NewPCG(1, 2))
	const n = 2000
	for range n {
		p.Pack(mustParse(t, random(t, source, 400)))
	}
	if most := keen + 2*n/rarely; p.known.unlike > most {
		t.Errorf("%d of %d objects were compared with a candidate; want at most %d", p.known.unlike, n, most)
	}
	for i := range n {
		p.Pack(mustParse(t, set(fmt.Sprint("early-", i), "")))
	}
	late := mustParse(t, set("late", ""))
	if size := p.Pack(late).Size(); size > late.Size()/12 {
		t.Errorf("%d of %d bytes are kept", size, late.Size())
	}
}

// The caller of PackWithout reads a watch.
func TestLongBodiesAreNotDeflatedWhereAWatchIsRead(t *testing.T) {
	for size, want := range map[int]form{longestDeflated / 2: deflated, longestDeflated + 100: plain} {
		noise := make([]byte, size/4*3)
		_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
		b := mustParse(t, fmt.Appendf(nil, `{"metadata":{"name":"n","uid":"u"},"data":%q}`, base64.StdEncoding.EncodeToString(noise)))
		var p Packer
		p.Pack(mustParse(t, set("a", ""))) // the dictionary
		packed := p.PackWithout(b, "")
		if h := packed.head(); h.form != want {
			t.Errorf("%d bytes have the form %d, want %d", b.Size(), h.form, want)
		}
		if string(packed.Body().Raw()) != string(b.Raw()) {
			t.Errorf("%d bytes are changed", b.Size())
		}
	}
}
