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

// source brings new certificates.
type source interface {
	// renew proposes the next certificate if it is time for one.
	renew(r ring, now time.Time) (ring, error)
}

// maker makes self-signed certificates.
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

// files are certificates that somebody else makes.
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
		return id, fmt.Errorf("the CA %s is no PEM", cmp.Or(f.caFile, f.cert))
	}
	// The files may be in the middle of a replacement: then the key is not the
	// certificate's, and the next look finds better ones.
	_, err = id.pair()
	return id, err
}

// keeper keeps a ring up to date together with other replicas.
type keeper struct {
	store   KeyStore
	source  source
	overlap time.Duration
}

// storeError is a failure of the store rather than of the certificates.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// conflicts is how many times others may be faster before it is an error.
const conflicts = 10

// turn loads the ring, makes what is due, and saves it if that was anything. If
// there are no new certificates although it is time for them, the old ones come
// with an error.
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
		// What is proposed may be trusted already, and then needs no waiting.
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

// announcement is what the cluster was told last.
type announcement struct {
	bundle []byte
	at     time.Time
}

// of is since when the cluster trusts all of the ring; zero if it does not.
func (a announcement) of(r ring) time.Time {
	if !bytes.Equal(a.bundle, r.bundle()) {
		return time.Time{}
	}
	return a.at
}
