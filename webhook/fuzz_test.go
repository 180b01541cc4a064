package webhook

import (
	"testing"
	"time"
)

func seedIdentity(f *testing.F) identity {
	id, err := selfSigned([]string{"a.example"}, time.Unix(1_700_000_000, 0), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	return id
}

// Keys, certificates and bundles in PEM are parsed or rejected, without a panic.
func FuzzPEM(f *testing.F) {
	id := seedIdentity(f)
	f.Add([]byte(``), "")
	f.Add(id.cert, "")
	f.Add(id.key, "x")
	f.Add([]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n"), "x")
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES-CBC,0000000000000000\n\nAAAAAAAAAAA=\n-----END RSA PRIVATE KEY-----\n"), "x")
	f.Fuzz(func(t *testing.T, text []byte, password string) {
		_, _ = decryptKey(text, password)
		given := identity{ca: text, cert: text, key: id.key}
		if leaf, err := given.leaf(); err == nil {
			covers(leaf, []string{"a.example", "127.0.0.1"})
			renewal(leaf)
		}
		if more := extra(extra(text, nil), text); len(more) > 0 {
			t.Fatalf("a bundle has extra certificates compared with itself: %s", more)
		}
	})
}

// A ring damaged by another client is read as far as it is usable. Storing and reading the
// result does not change it.
func FuzzRing(f *testing.F) {
	id := seedIdentity(f)
	f.Add([]byte(nil), []byte(nil), []byte(nil), []byte(nil), []byte(nil), []byte(nil))
	f.Add(id.cert, id.key, id.ca, id.cert, []byte("2026-01-01T00:00:00Z"), []byte("x"))
	f.Add([]byte("x"), id.key, []byte("-----BEGIN"), []byte("x"), []byte("0000"), id.ca)
	f.Fuzz(func(t *testing.T, cert, key, ca, next, since, previous []byte) {
		r := readRing(map[string][]byte{
			itemCert: cert, itemKey: key, itemCA: ca, itemNextCert: next, itemNextKey: key, itemNextCA: ca, itemNextSince: since,
			itemPrevious: previous, itemPreviousSince: since,
		})
		now := time.Unix(1_700_000_100, 0)
		r.bundle()
		r.due(now, time.Minute)
		after := r.step(now, now, time.Minute)
		after.bundle()
		if again := readRing(r.items()); !again.current.equal(r.current) || !again.next.equal(r.next) {
			t.Fatal("the ring changed when it was stored")
		}
	})
}
