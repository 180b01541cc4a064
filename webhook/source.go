package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// source provides new certificates.
type source interface {
	// renew adds the next certificate to the ring if a renewal is due.
	renew(r ring, now time.Time) (ring, error)
}

// maker creates self-signed certificates.
type maker struct {
	names    []string
	lifetime time.Duration
}

const defaultLifetime = 365 * 24 * time.Hour

func (m maker) renew(r ring, now time.Time) (ring, error) {
	leaf, err := r.current.leaf()
	wanted := err != nil || !now.Before(renewal(leaf)) || !covers(leaf, m.names)
	if !wanted || !r.next.empty() && r.current.valid(now) {
		return r, nil
	}
	id, err := selfSigned(m.names, now, cmp.Or(m.lifetime, defaultLifetime))
	if err != nil {
		return r, err
	}
	return r.propose(id, now), nil
}

// files reads certificates that another program provides.
type files struct {
	cert, key, password string
	ca                  []byte
	caFile              string
}

func (f files) renew(r ring, now time.Time) (ring, error) {
	id, err := f.read()
	if err != nil {
		return r, err
	}
	if id.equal(r.current) || id.equal(r.next) {
		return r, nil
	}
	return r.propose(id, now), nil
}

func (f files) read() (id identity, err error) {
	if id.cert, err = os.ReadFile(f.cert); err != nil {
		return id, fmt.Errorf("read the certificate: %w", err)
	}
	if id.key, err = os.ReadFile(f.key); err != nil {
		return id, fmt.Errorf("read the key: %w", err)
	}
	if f.password != "" {
		if id.key, err = decryptKey(id.key, f.password); err != nil {
			return id, fmt.Errorf("decrypt the key %s: %w", f.key, err)
		}
	}
	switch {
	case f.ca != nil:
		id.ca = f.ca
	case f.caFile != "":
		if id.ca, err = os.ReadFile(f.caFile); err != nil {
			return id, fmt.Errorf("read the CA: %w", err)
		}
	default:
		id.ca = id.cert
	}
	if block, _ := pem.Decode(id.ca); block == nil {
		return id, fmt.Errorf("the CA %s is not in PEM format", cmp.Or(f.caFile, f.cert))
	}
	// While the files are being replaced, the key may not match the certificate. The next
	// check reads the complete files.
	_, err = id.pair()
	return id, err
}

// keeper keeps a ring up to date, together with other replicas.
type keeper struct {
	store   KeyStore
	source  source
	overlap time.Duration
}

// storeError is an error of the store, in contrast to one of the certificates.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// conflicts limits the attempts to save when other replicas save at the same time.
const conflicts = 10

// turn loads the ring, makes the changes that are due, and saves it if it changed. If a
// renewal is due but fails, it returns the old certificates and an error.
func (k keeper) turn(ctx context.Context, announced announcement) (ring, error) {
	for range conflicts {
		items, version, err := k.store.Load(ctx)
		if err != nil {
			return ring{}, storeError{fmt.Errorf("load the certificates: %w", err)}
		}
		now := time.Now()
		r := readRing(items)
		r = r.step(now, announced.of(r), k.overlap)
		r, failure := k.source.renew(r, now)
		// The proposed certificate may already be trusted. Then it needs no waiting.
		r = r.step(now, announced.of(r), k.overlap)
		if r.current.empty() {
			return r, failure
		}
		wanted := r.items()
		if maps.EqualFunc(items, wanted, slices.Equal) {
			return r, failure
		}
		err = k.store.Save(ctx, wanted, version)
		if err == nil {
			return r, failure
		}
		if !errors.Is(err, ErrConflict) {
			return ring{}, storeError{fmt.Errorf("save the certificates: %w", err)}
		}
	}
	return ring{}, storeError{fmt.Errorf("save the certificates: %w", ErrConflict)}
}

// announcement is the bundle that the cluster received last.
type announcement struct {
	bundle []byte
	at     time.Time
}

// of returns the time since when the cluster trusts all of the ring. Zero means that it
// does not.
func (a announcement) of(r ring) time.Time {
	if !bytes.Equal(a.bundle, r.bundle()) {
		return time.Time{}
	}
	return a.at
}
