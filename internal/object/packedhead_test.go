package object

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestUIDsAreRestoredExactly(t *testing.T) {
	for uid, short := range map[string]bool{
		"":                                      false,
		"u":                                     false,
		"5f1b9a52-8b7e-4d43-9df5-0123456789ab":  true,
		"00000000-0000-0000-0000-000000000000":  true,
		"5F1b9a52-8b7e-4d43-9df5-0123456789ab":  false,
		"5f1b9a52-8b7e-4d43-9df5-0123456789aB":  false,
		"5f1b9a52-8b7e-4d43-9df5-0123456789ag":  false,
		"5f1b9a528b7e-4d43-9df5-0123456789ab00": false,
		"5f1b9a52-8b7e-4d43-9df5-01234567-9ab":  false,
		"5f1b9a52-8b7e-4d43-9df5-0123456789abc": false,
		strings.Repeat("-", 36):                 false,
		strings.Repeat("é", 18):                 false,
	} {
		packed := shortUID(uid)
		if packed.String() != uid || packed.isShort != short {
			t.Errorf("%q became %q, short: %t", uid, packed, packed.isShort)
		}
	}
}

// Texts that are left out may overlap, be missing, or occur several times.
func TestGapsAreFilledAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(length int) string {
		letters := make([]byte, random.IntN(length))
		for i := range letters {
			letters[i] = 'a' + byte(random.IntN(2))
		}
		return string(letters)
	}
	for range 10_000 {
		raw, uid, kept := []byte(text(30)), text(6), text(6)
		before := string(raw)
		var g gaps
		without := g.open(new([]byte), raw, uid, kept)
		if string(raw) != before {
			t.Fatalf("%q was changed to %q", before, raw)
		}
		if got := g.fill(bytes.Clone(without), uid, kept); string(got) != before {
			t.Fatalf("%q without %q and %q: got %q", before, uid, kept, got)
		}
	}
}

func TestTextsThatTheCallerKeepsAreLeftOut(t *testing.T) {
	var p Packer
	const owner = "0b0d4b56-52a3-4b9a-a2d1-0123456789ab"
	made := func(i int) *Body {
		return mustParse(t, set(fmt.Sprint("set-", i), `{"uid":"`+owner+`"}`))
	}
	p.Pack(made(0))
	with, without := p.Pack(mustParse(t, set("other", owner))), p.PackWithout(mustParse(t, set("other", owner)), owner)
	if without.Size() > with.Size() {
		t.Errorf("%d bytes are kept, and %d with the text", without.Size(), with.Size())
	}
	for i := range 3 {
		body := made(i)
		if got := p.PackWithout(body, owner).BodyWith(owner); !bytes.Equal(got.Raw(), body.Raw()) || got.Identity != body.Identity {
			t.Errorf("got %s", got.Raw())
		}
	}
}

func TestOnlySimilarBodiesArePackedAsSimilar(t *testing.T) {
	var p Packer
	p.Pack(mustParse(t, set("first", "")))
	raw := set("second", "")
	if k := p.PackSimilar(mustParse(t, raw)); k == nil || k.Size() > len(raw)/6 || !bytes.Equal(k.Body().Raw(), raw) {
		t.Errorf("got %v", k)
	}
	if k := p.PackSimilar(mustParse(t, random(t, rand.New(rand.NewPCG(1, 2)), 4000))); k != nil {
		t.Errorf("an object that resembles no other was packed to %d bytes", k.Size())
	}
	var empty Packer
	tiny := []byte(`{"metadata":{"name":"a"}}`)
	if k := empty.PackSimilar(mustParse(t, tiny)); k != nil && !bytes.Equal(k.Body().Raw(), tiny) {
		t.Errorf("got %s", k.Body().Raw())
	}
}
