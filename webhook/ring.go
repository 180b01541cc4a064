package webhook

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// ring holds the certificates of one server over time: the one being served, the next
// one, and the CA that must still be trusted. Its methods are pure.
//
//	next appears          trust: current, next       serve: current
//	an overlap later      trust: previous, current   serve: the former next
//	an overlap later      trust: current             serve: current
type ring struct {
	current identity
	next    identity

	nextSince     time.Time
	previous      []byte // the CA of the former certificate
	previousSince time.Time
}

func (id identity) empty() bool { return len(id.cert) == 0 }

func (id identity) equal(other identity) bool {
	return bytes.Equal(id.cert, other.cert) && bytes.Equal(id.key, other.key) && bytes.Equal(id.ca, other.ca)
}

// propose sets the next identity. If the current one is missing or expired, the new one
// replaces it immediately.
func (r ring) propose(id identity, now time.Time) ring {
	if !r.current.valid(now) {
		r.current, r.next = id, identity{}
		return r
	}
	r.next, r.nextSince = id, now
	return r
}

// step makes the changes that are due. The next certificate is served once it was
// announced for the time of the overlap. A zero announced time means that it was not
// announced yet.
func (r ring) step(now, announced time.Time, overlap time.Duration) ring {
	if !r.next.empty() && r.promotable(now, announced, overlap) {
		if len(extra(r.next.ca, r.current.ca)) > 0 || len(extra(r.current.ca, r.next.ca)) > 0 {
			r.previous, r.previousSince = r.current.ca, now
		}
		r.current, r.next, r.nextSince = r.next, identity{}, time.Time{}
	}
	if r.previous != nil && !now.Before(r.previousSince.Add(overlap)) {
		r.previous, r.previousSince = nil, time.Time{}
	}
	return r
}

func (r ring) promotable(now, announced time.Time, overlap time.Duration) bool {
	switch {
	case !r.current.valid(now):
		return true
	case len(extra(r.next.ca, r.current.ca)) == 0:
		return true // its CA is already trusted
	case announced.IsZero():
		return false
	}
	return !now.Before(latest(r.nextSince, announced).Add(overlap))
}

// due returns the time of the next change by step. ok is false if there is none.
func (r ring) due(announced time.Time, overlap time.Duration) (at time.Time, ok bool) {
	if !r.next.empty() {
		at, ok = latest(r.nextSince, announced).Add(overlap), true
		if leaf, err := r.current.leaf(); err == nil && leaf.NotAfter.Before(at) {
			at = leaf.NotAfter
		}
	}
	if r.previous != nil {
		if drop := r.previousSince.Add(overlap); !ok || drop.Before(at) {
			at, ok = drop, true
		}
	}
	return at, ok
}

// bundle returns the CAs to trust, oldest first. In this order, the bundle does not change
// when the next certificate takes over.
func (r ring) bundle() []byte {
	var all []byte
	for _, ca := range [][]byte{r.previous, r.current.ca, r.next.ca} {
		all = append(all, extra(ca, all)...)
	}
	return all
}

// extra returns the certificates in bundle that are not in other.
func extra(bundle, other []byte) (found []byte) {
	there := map[string]bool{}
	for block := range blocks(other) {
		there[string(block.Bytes)] = true
	}
	for block := range blocks(bundle) {
		if !there[string(block.Bytes)] {
			there[string(block.Bytes)] = true
			found = append(found, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	return found
}

func blocks(bundle []byte) func(yield func(*pem.Block) bool) {
	return func(yield func(*pem.Block) bool) {
		for {
			var block *pem.Block
			if block, bundle = pem.Decode(bundle); block == nil || !yield(block) {
				return
			}
		}
	}
}

// valid reports whether the certificate is readable and not expired.
func (id identity) valid(now time.Time) bool {
	leaf, err := id.leaf()
	return err == nil && now.Before(leaf.NotAfter)
}

// renewal returns the time to replace a certificate, well before it expires.
func renewal(leaf *x509.Certificate) time.Time {
	return leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 3)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// The names of the stored items.
const (
	itemCert          = "tls.crt"
	itemKey           = "tls.key"
	itemCA            = "ca.crt"
	itemNextCert      = "next-tls.crt"
	itemNextKey       = "next-tls.key"
	itemNextCA        = "next-ca.crt"
	itemNextSince     = "next-since"
	itemPrevious      = "previous-ca.crt"
	itemPreviousSince = "previous-since"
)

// items returns the ring in its stored form.
func (r ring) items() map[string][]byte {
	items := map[string][]byte{itemCert: r.current.cert, itemKey: r.current.key, itemCA: r.current.ca}
	if !r.next.empty() {
		items[itemNextCert], items[itemNextKey], items[itemNextCA] = r.next.cert, r.next.key, r.next.ca
		items[itemNextSince] = r.nextSince.UTC().AppendFormat(nil, time.RFC3339Nano)
	}
	if r.previous != nil {
		items[itemPrevious] = r.previous
		items[itemPreviousSince] = r.previousSince.UTC().AppendFormat(nil, time.RFC3339Nano)
	}
	return items
}

// readRing parses the stored form. It drops unusable parts; they are then created again.
func readRing(items map[string][]byte) ring {
	r := ring{
		current: identity{ca: items[itemCA], cert: items[itemCert], key: items[itemKey]},
		next:    identity{ca: items[itemNextCA], cert: items[itemNextCert], key: items[itemNextKey]},
	}
	if _, err := r.current.pair(); err != nil {
		r.current = identity{}
	}
	var err error
	if r.nextSince, err = time.Parse(time.RFC3339Nano, string(items[itemNextSince])); err != nil {
		r.next, r.nextSince = identity{}, time.Time{}
	} else if _, err := r.next.pair(); err != nil {
		r.next, r.nextSince = identity{}, time.Time{}
	}
	if since, err := time.Parse(time.RFC3339Nano, string(items[itemPreviousSince])); err == nil {
		r.previous, r.previousSince = items[itemPrevious], since
	}
	return r
}
